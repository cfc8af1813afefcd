// A scenario as the form holds it: nested tables, as JSON and TOML have them. Every change makes a new one.

import type { Field } from "./fields";

export type Tables = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export function valueOf(tables: Tables, field: Field): unknown {
  const value = tables[field.section]?.[field.key];
  return value === undefined ? field.fallback : value;
}

export function withValue(tables: Tables, field: Field, value: unknown): Tables {
  return { ...tables, [field.section]: { ...tables[field.section], [field.key]: value } };
}

/** The tables without what is as it would be anyway. */
export function differing(tables: Tables, base: Tables, fields: readonly Field[]): Field[] {
  return fields.filter((field) => !same(valueOf(tables, field), valueOf(base, field)));
}

export function same(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** Read what was typed into a number field; text that is no number stays text, for the manager to refuse in words. */
export function readNumber(typed: string, kind: "integer" | "number"): number | string {
  const text = typed.trim().replaceAll(",", "").replace("−", "-");
  if (text === "" || !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return typed;
  const value = Number(text);
  if (!Number.isFinite(value)) return typed;
  return kind === "integer" && !Number.isSafeInteger(value) ? typed : value;
}

/** Read a list of whole numbers with commas or blanks between them, and ranges such as `4-7`. */
export function readIntegers(typed: string): number[] | string {
  const found: number[] = [];
  for (const part of typed.split(/[\s,;]+/).filter(Boolean)) {
    const [, from, to] = /^(\d{1,7})(?:[-–](\d{1,7}))?$/.exec(part) ?? [];
    if (from === undefined) return typed;
    const last = Number(to ?? from);
    if (last < Number(from) || last - Number(from) > 4096) return typed;
    for (let each = Number(from); each <= last; each += 1) found.push(each);
  }
  return found;
}

export interface ChurnEntry {
  node: number;
  round: number;
}

/** Read nodes that come or go, written as `node@round`: `3@4, 5@4`. */
export function readChurn(typed: string): ChurnEntry[] | string {
  const found: ChurnEntry[] = [];
  for (const part of typed.split(/[\s,;]+/).filter(Boolean)) {
    const [, node, round] = /^(\d{1,7})@(\d{1,7})$/.exec(part) ?? [];
    if (node === undefined || round === undefined) return typed;
    found.push({ node: Number(node), round: Number(round) });
  }
  return found;
}

export function writeChurn(value: unknown): string {
  if (!Array.isArray(value)) return typeof value === "string" ? value : "";
  return value.map((entry: ChurnEntry) => `${entry.node}@${entry.round}`).join(", ");
}

/** Read options of one's own learner: one `name = value` a line. */
export function readTable(typed: string): Record<string, string | number | boolean> | string {
  const found: Record<string, string | number | boolean> = {};
  for (const line of typed.split("\n").filter((each) => each.trim())) {
    const [, name, raw] = /^\s*([A-Za-z0-9_-]+)\s*=\s*(.+?)\s*$/.exec(line) ?? [];
    if (name === undefined || raw === undefined) return typed;
    const value = raw === "true" ? true : raw === "false" ? false : readNumber(raw, "number");
    found[name] = typeof value === "string" ? value.replace(/^"(.*)"$/, "$1") : value;
  }
  return found;
}

export function writeTable(value: unknown): string {
  if (typeof value === "string") return value;
  return Object.entries((value ?? {}) as Record<string, unknown>)
    .map(([name, each]) => `${name} = ${typeof each === "string" ? JSON.stringify(each) : String(each)}`)
    .join("\n");
}
