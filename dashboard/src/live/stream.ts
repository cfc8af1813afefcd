// The connection to a run's stream.
//
//   connecting --answer------------> open --end message---------> over
//       ^                             |
//       +---- after a pause -- lost <-+--broken, or silent for long
//   connecting --401, 404, 4xx-----> refused
//
// Invariant: a connection that comes back names the last message that was seen, so that none is missed or seen twice.

import type { Message } from "../client/documents";
import { address, refusal } from "../client/request";
import { SseParser } from "./sse";

export type Connection =
  | { state: "connecting" }
  | { state: "open" }
  | { state: "lost"; retryMs: number }
  | { state: "over" }
  | { state: "refused"; problem: string };

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** The manager comments a quiet stream every 15 s. */
const SILENCE_MS = 45_000;

export class Stream {
  readonly #run: string;
  readonly #after: number;
  readonly #onMessage: (message: Message) => void;
  readonly #onConnection: (connection: Connection) => void;
  readonly #stop = new AbortController();
  #lastId: string | null = null;
  #pauseMs = FIRST_PAUSE_MS;
  #isOver = false;

  constructor(options: {
    run: string;
    after: number;
    onMessage: (message: Message) => void;
    onConnection: (connection: Connection) => void;
  }) {
    this.#run = options.run;
    this.#after = options.after;
    this.#onMessage = options.onMessage;
    this.#onConnection = options.onConnection;
  }

  async follow(): Promise<void> {
    while (!this.#stop.signal.aborted && !this.#isOver) {
      const problem = await this.#once();
      if (this.#stop.signal.aborted) return;
      if (problem !== null) {
        this.#onConnection({ state: "refused", problem });
        return;
      }
      if (this.#isOver) break;
      this.#onConnection({ state: "lost", retryMs: this.#pauseMs });
      await pause(this.#pauseMs, this.#stop.signal);
      this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
    }
    if (this.#isOver) this.#onConnection({ state: "over" });
  }

  close(): void {
    this.#stop.abort();
  }

  /** Read one connection to its end; return why there will be no other, if so. */
  async #once(): Promise<string | null> {
    this.#onConnection({ state: "connecting" });
    const silence = new AbortController();
    let watch = window.setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      const answer = await fetch(address("/api/runs/{run}/stream", { path: { run: this.#run }, query: { after: this.#after } }), {
        credentials: "same-origin",
        headers: { accept: "text/event-stream", ...(this.#lastId === null ? {} : { "last-event-id": this.#lastId }) },
        signal: AbortSignal.any([this.#stop.signal, silence.signal]),
      });
      if (!answer.ok) return answer.status >= 500 ? null : (await refusal(answer)).message;
      if (answer.body === null) return "The browser cannot read streams.";
      this.#onConnection({ state: "open" });
      this.#pauseMs = FIRST_PAUSE_MS;
      const parser = new SseParser();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return null;
        window.clearTimeout(watch);
        watch = window.setTimeout(() => silence.abort(), SILENCE_MS);
        for (const message of parser.push(value)) this.#take(message.id, message.data);
        if (this.#isOver) return null;
      }
    } catch {
      return null; // broken or silent: it is tried again
    } finally {
      window.clearTimeout(watch);
    }
  }

  #take(id: string, data: string): void {
    if (id !== "") this.#lastId = id;
    const message = JSON.parse(data) as Message;
    if (message.kind === "end") this.#isOver = true;
    this.#onMessage(message);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      window.clearTimeout(timer);
      resolve();
    });
  });
}
