// One way to ask the manager. Paths, bodies and answers are those of its OpenAPI schema, so that a page that no longer fits
// does not compile.

import type { Mistake } from "./documents";
import type { paths } from "./schema";

type Json<T> = T extends { content: { "application/json": infer Document } } ? Document : undefined;
type Success<T> = T extends { responses: infer R }
  ? R extends { 200: infer A } ? Json<A> : R extends { 201: infer A } ? Json<A> : undefined
  : never;
type Body<T> = T extends { requestBody: { content: { "application/json": infer Document } } } ? Document : undefined;
type Method = "get" | "post" | "delete";
type PathsWith<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths];
type Operation<P extends keyof paths, M extends Method> = paths[P] extends Record<M, infer O> ? O : never;

export interface Where {
  path?: Readonly<Record<string, string | number>>;
  query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
  signal?: AbortSignal;
}

/** Why the manager refused, or why it could not be asked; always a sentence for people. */
export class RequestError extends Error {
  readonly status: number;
  readonly mistakes: readonly Mistake[];

  constructor(status: number, problem: string, mistakes: readonly Mistake[] = []) {
    super(problem);
    this.status = status;
    this.mistakes = mistakes;
  }
}

type Refused = () => void;
let onRefused: Refused = () => undefined;

/** Call this when a request needs a token that the browser does not have. */
export function whenRefused(call: Refused): void {
  onRefused = call;
}

export function get<P extends PathsWith<"get"> & string>(path: P, where: Where = {}): Promise<Success<Operation<P, "get">>> {
  return ask("GET", path, where) as Promise<Success<Operation<P, "get">>>;
}

export function post<P extends PathsWith<"post"> & string>(
  path: P,
  body: Body<Operation<P, "post">>,
  where: Where = {},
): Promise<Success<Operation<P, "post">>> {
  return ask("POST", path, where, body) as Promise<Success<Operation<P, "post">>>;
}

export function remove<P extends PathsWith<"delete"> & string>(path: P, where: Where = {}): Promise<void> {
  return ask("DELETE", path, where) as Promise<void>;
}

/** The address of something, relative to this page. */
export function address(path: string, { path: parts = {}, query = {} }: Where = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parts[name] ?? "")));
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    if (Array.isArray(value)) for (const each of value as readonly string[]) asked.append(name, each);
    else asked.set(name, String(value));
  }
  return `.${filled}${asked.size > 0 ? `?${asked}` : ""}`;
}

async function ask(method: string, path: string, where: Where, body?: unknown): Promise<unknown> {
  let answer: Response;
  try {
    answer = await fetch(address(path, where), {
      method,
      credentials: "same-origin",
      ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
      ...(where.signal === undefined ? {} : { signal: where.signal }),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new RequestError(0, "The manager does not answer. Is it still running?");
  }
  if (answer.ok) return answer.status === 204 ? undefined : answer.json();
  throw await refusal(answer);
}

/** Read why an answer is not what was asked for. */
export async function refusal(answer: Response): Promise<RequestError> {
  let problem = `The manager answered with status ${answer.status}.`;
  let mistakes: readonly Mistake[] = [];
  try {
    const said = (await answer.json()) as { problem?: unknown; mistakes?: unknown };
    if (typeof said.problem === "string") problem = sentence(said.problem);
    if (Array.isArray(said.mistakes)) mistakes = said.mistakes as Mistake[];
  } catch {
    // Not the manager's own words, such as those of a proxy in between.
  }
  if (answer.status === 401) onRefused();
  return new RequestError(answer.status, problem, mistakes);
}

function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
