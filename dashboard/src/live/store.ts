// A run as it is told, ready to be drawn. Nothing here knows of React or of the network.
//
// Invariant: every message counts once. History comes with the position up to which it was told; what the stream repeats
// of it is left out. Whoever shows the run is woken once a batch, not once a message, and every buffer is bounded.

import type { EventMessage, Message, MetricsMessage, NodeList, RunStatus, Series, SeriesList } from "../client/documents";
import { Binned } from "./binned";
import { NodeState, TOTALS } from "./nodes";
import { reportedAt } from "./reported";
import { RoundFigure } from "./rounds";

const EVENTS_KEPT = 2_000;
/** More names than this come from a learner that invents them. */
const METRICS_KEPT = 120;

/** On the run's clock, when nodes reported a round. */
export const REPORTED_AT = "reported_at_s";

export class RunStore {
  readonly nodes: readonly NodeState[];
  readonly events: EventMessage[] = [];
  status: RunStatus;
  reason = "";
  clock_s = 0;
  version = 0;
  readonly #rounds = new Map<string, RoundFigure>();
  readonly #gauges = new Map<string, Binned>();
  readonly #listeners = new Set<() => void>();
  #eventsUntil = 0;
  #seriesUntil = 0;
  #nodesUntil = 0;

  constructor(nodes: number, status: RunStatus) {
    this.status = status;
    this.nodes = Array.from({ length: nodes }, (_, node) => new NodeState(node));
  }

  subscribe = (heard: () => void): (() => void) => {
    this.#listeners.add(heard);
    return () => this.#listeners.delete(heard);
  };

  /** Take what was told before the page was opened. */
  seed(history: { nodes: NodeList; series: SeriesList; events: readonly EventMessage[] }): void {
    const { nodes, series, events } = history;
    for (const found of nodes.nodes) this.nodes[found.node]?.seed(found, nodes.clock_s);
    for (const each of series.series) this.#seedSeries(each);
    for (const point of reportedAt(series.series, nodes.clock_s)) this.#figure(REPORTED_AT)?.seed(point);
    this.clock_s = nodes.clock_s;
    this.events.push(...events.slice(-EVENTS_KEPT));
    this.#nodesUntil = nodes.position;
    this.#seriesUntil = series.position;
    this.#eventsUntil = Math.max(nodes.position, ...events.slice(-1).map((event) => event.position));
    this.#wake();
  }

  /** Take a batch of messages. */
  apply(batch: readonly Message[]): void {
    if (batch.length === 0) return;
    for (const message of batch) this.#take(message);
    this.#wake();
  }

  round(name: string): RoundFigure | null {
    return this.#rounds.get(name) ?? null;
  }

  gauge(name: string): Binned | null {
    return this.#gauges.get(name) ?? null;
  }

  /** The latest round that any node is in. */
  get currentRound(): number {
    return this.nodes.reduce((latest, node) => Math.max(latest, node.round), 0);
  }

  #take(message: Message): void {
    if (message.kind === "end") {
      this.status = message.status;
      this.reason = message.reason;
      return;
    }
    this.clock_s = Math.max(this.clock_s, message.time_s);
    switch (message.kind) {
      case "metrics":
        this.#figures(message);
        return;
      case "event":
        this.#happen(message);
        return;
      case "phase": {
        if (message.position <= this.#nodesUntil) return;
        const node = this.nodes[message.node];
        if (node === undefined || node.presence === "left" || node.presence === "dead") return;
        node.hear(message.time_s, message.round);
        node.phase = message.phase;
      }
    }
  }

  #figures({ position, time_s, round, node: index, values }: MetricsMessage): void {
    const node = index === null ? undefined : this.nodes[index];
    if (node === undefined) return;
    const isNews = position > this.#seriesUntil;
    if (position > this.#nodesUntil) node.hear(time_s, round);
    if (round === null) {
      const found = node.sample(time_s, values);
      if (isNews) for (const [name, value] of found) this.#gauge(name)?.add(time_s, value);
      return;
    }
    for (const [name, value] of Object.entries(values)) {
      if (value === null) continue;
      node.figures.set(name, value);
      if (isNews) this.#figure(name)?.add(round, value);
    }
    if (isNews && "round_s" in values) this.#figure(REPORTED_AT)?.add(round, time_s);
  }

  #happen(event: EventMessage): void {
    if (event.position <= this.#eventsUntil) return;
    this.events.push(event);
    if (this.events.length > EVENTS_KEPT) this.events.splice(0, this.events.length - EVENTS_KEPT);
    if (event.node !== null) this.nodes[event.node]?.happen(event);
  }

  #seedSeries({ metric, of, points }: Series): void {
    if (of === "round") {
      const figure = this.#figure(metric);
      for (const point of points) figure?.seed(point);
      return;
    }
    const rate = TOTALS[metric];
    const gauge = this.#gauge(rate ?? metric);
    let before: { x: number; mean: number } | null = null;
    for (const { x, mean, low, high } of points) {
      if (rate === undefined) gauge?.addRange(x, { mean, low, high });
      else if (before !== null && x > before.x && mean >= before.mean) gauge?.add(x, (mean - before.mean) / (x - before.x));
      before = { x, mean };
    }
  }

  #figure(name: string): RoundFigure | null {
    return entry(this.#rounds, name, () => new RoundFigure());
  }

  #gauge(name: string): Binned | null {
    return entry(this.#gauges, name, () => new Binned());
  }

  #wake(): void {
    this.version += 1;
    for (const heard of this.#listeners) heard();
  }
}

function entry<T>(known: Map<string, T>, name: string, make: () => T): T | null {
  const found = known.get(name);
  if (found !== undefined) return found;
  if (known.size >= METRICS_KEPT) return null;
  const made = make();
  known.set(name, made);
  return made;
}
