// One node as far as the run has told of it.
//
//   absent --a word of it, or join-----> present --exit--> left
//                                        present --death-> dead --join--> present

import type { EventMessage, NodeDocument } from "../client/documents";

export type Presence = "absent" | "present" | "left" | "dead";

/** Gauges that are totals since the node began; their growth is a rate. */
export const TOTALS: Readonly<Record<string, string>> = {
  packets_sent: "packets_per_s",
  packets_relayed: "relayed_per_s",
  bytes_sent: "bytes_per_s",
};

const PRESENCE: Readonly<Record<NodeDocument["state"], Presence>> = {
  waiting: "absent",
  running: "present",
  finished: "present",
  left: "left",
  dead: "dead",
};

export class NodeState {
  readonly node: number;
  presence: Presence = "absent";
  phase: string | null = null;
  round = 0;
  heardAt_s: number | null = null;
  poisons = false;
  lastError: string | null = null;
  readonly gauges = new Map<string, number>();
  readonly figures = new Map<string, number>();
  readonly #totals = new Map<string, { time_s: number; value: number }>();

  constructor(node: number) {
    this.node = node;
  }

  /** Take how it stood when the page was opened. */
  seed(found: NodeDocument, clock_s: number): void {
    this.presence = PRESENCE[found.state];
    this.phase = found.phase;
    this.round = found.round;
    this.heardAt_s = found.heard_at_s;
    this.poisons = found.poisons;
    this.lastError = found.last_error;
    for (const [name, value] of Object.entries(found.figures)) if (value !== null) this.figures.set(name, value);
    for (const [name, value] of Object.entries(found.gauges)) {
      if (value === null) continue;
      if (name in TOTALS) this.#totals.set(name, { time_s: found.heard_at_s ?? clock_s, value });
      else this.gauges.set(name, value);
    }
  }

  hear(time_s: number, round: number | null): void {
    this.heardAt_s = Math.max(this.heardAt_s ?? 0, time_s);
    if (round !== null) this.round = Math.max(this.round, round);
    if (this.presence === "absent") this.presence = "present";
  }

  /** Take gauges, and return them with rates in the place of totals. */
  sample(time_s: number, values: Readonly<Record<string, number | null>>): [string, number][] {
    const found: [string, number][] = [];
    for (const [name, value] of Object.entries(values)) {
      if (value === null || !Number.isFinite(value)) continue;
      if (name === "round") this.round = Math.max(this.round, value);
      const rate = TOTALS[name];
      if (rate === undefined) {
        found.push([name, value]);
        continue;
      }
      const before = this.#totals.get(name);
      this.#totals.set(name, { time_s, value });
      if (before !== undefined && time_s > before.time_s && value >= before.value) {
        found.push([rate, (value - before.value) / (time_s - before.time_s)]);
      }
    }
    for (const [name, value] of found) this.gauges.set(name, value);
    return found;
  }

  happen({ what, text }: Pick<EventMessage, "what" | "text">): void {
    if (what === "join") this.presence = "present";
    if (what === "exit") this.presence = "left";
    if (what === "attack") this.poisons = true;
    if (what === "death") {
      this.presence = "dead";
      this.lastError = text;
    }
    if (what === "exit" || what === "death") this.phase = null;
  }
}
