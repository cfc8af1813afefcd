// The curves of the live page, from the store's figures. Rounds stand at the moment at which nodes reported them, unless
// the visitor wants them by their number.

import type { Curve, Mark } from "../charts/curves";
import type { Look } from "../charts/options";
import type { EventMessage } from "../client/documents";
import { bytes, duration, mebibytes, number, percent } from "../lib/format";
import { REPORTED_AT, type RunStore } from "./store";

export type Axis = "time" | "round";

export interface ChartPlan {
  title: string;
  says: string;
  of: "round" | "moment";
  metrics: readonly { name: string; label: string; colour: string; band?: boolean; dash?: readonly number[] }[];
  format: (value: number) => string;
  zero: boolean;
  most: number | null;
}

export const PLANS: readonly ChartPlan[] = [
  {
    title: "Accuracy",
    says: "Of the aggregated model on the test data: the mean over nodes, and from the least to the greatest.",
    of: "round",
    metrics: [{ name: "accuracy", label: "mean", colour: "c1", band: true }],
    format: (value) => percent(value),
    zero: false,
    most: null,
  },
  {
    title: "Completeness",
    says: "Share of the expected fragments that had come when a round was aggregated.",
    of: "round",
    metrics: [{ name: "completeness", label: "mean", colour: "c3", band: true }],
    format: (value) => percent(value),
    zero: true,
    most: 1,
  },
  {
    title: "Round trip",
    says: "From a fragment's departure to its acknowledgement.",
    of: "round",
    metrics: [
      { name: "rtt_s_p50", label: "median", colour: "c1", band: true },
      { name: "rtt_s_p95", label: "95th percentile", colour: "c2", dash: [5, 4] },
    ],
    format: duration,
    zero: true,
    most: null,
  },
  {
    title: "Queue",
    says: "Packets that wait in a node's mixer: its own, and those of others.",
    of: "moment",
    metrics: [
      { name: "queue_own", label: "own", colour: "c1" },
      { name: "queue_transit", label: "of others", colour: "c2", band: true },
    ],
    format: number,
    zero: true,
    most: null,
  },
  {
    title: "Cover",
    says: "Share of cover among the packets that began their way at a node.",
    of: "moment",
    metrics: [{ name: "cover_share", label: "mean", colour: "c4", band: true }],
    format: (value) => percent(value),
    zero: true,
    most: 1,
  },
  {
    title: "Sent",
    says: "Bytes a second that a node puts on its links, relayed packets and cover included.",
    of: "moment",
    metrics: [{ name: "bytes_per_s", label: "mean", colour: "c5", band: true }],
    format: (value) => `${bytes(value)}/s`,
    zero: true,
    most: null,
  },
  {
    title: "CPU a round",
    says: "CPU time of a node in a round, by its two processes.",
    of: "round",
    metrics: [
      { name: "cpu_learner_s", label: "learner", colour: "c2" },
      { name: "cpu_mix_s", label: "mix", colour: "c1" },
      { name: "cpu_s", label: "both", colour: "c6", band: true, dash: [5, 4] },
    ],
    format: duration,
    zero: true,
    most: null,
  },
  {
    title: "Memory",
    says: "Memory of a node; shared pages are counted by their share.",
    of: "round",
    metrics: [{ name: "pss_mib", label: "mean", colour: "c3", band: true }],
    format: mebibytes,
    zero: true,
    most: null,
  },
];

export function lookOf(plan: ChartPlan, axis: Axis, until: number): Look {
  return { x: plan.of === "moment" ? "time" : axis, format: plan.format, zero: plan.zero, most: plan.most, until };
}

export function curvesOf(plan: ChartPlan, store: RunStore, axis: Axis): Curve[] {
  return plan.metrics.flatMap(({ name, label, colour, band, dash }) => {
    const found = plan.of === "moment" ? momentCurve(store, name) : roundCurve(store, name, axis);
    if (found === null) return [];
    const { x, y, low, high } = found;
    return [{ label, colour, x, y, ...(band ? { low, high } : {}), ...(dash ? { dash } : {}) }];
  });
}

type Raw = { x: number[]; y: (number | null)[]; low: (number | null)[]; high: (number | null)[] };

function momentCurve(store: RunStore, name: string): Raw | null {
  const columns = store.gauge(name)?.columns();
  return columns ? { x: columns.x, y: columns.mean, low: columns.low, high: columns.high } : null;
}

function roundCurve(store: RunStore, name: string, axis: Axis): Raw | null {
  const figure = store.round(name);
  if (figure === null) return null;
  const reported = store.round(REPORTED_AT);
  const found: Raw = { x: [], y: [], low: [], high: [] };
  for (const point of figure.points()) {
    const x = axis === "round" ? point.x : (reported?.at(point.x)?.mean ?? null);
    if (x === null || x <= (found.x.at(-1) ?? -1)) continue;
    found.x.push(x);
    found.y.push(point.mean);
    found.low.push(point.low);
    found.high.push(point.high);
  }
  return found;
}

const MARKED: Readonly<Record<EventMessage["what"], { colour: string; label: string } | null>> = {
  join: { colour: "c3", label: "joined" },
  exit: { colour: "c4", label: "left" },
  attack: { colour: "bad", label: "poisons" },
  death: { colour: "bad", label: "died" },
  link: null, // too many to mark; they stand in the list
  note: null,
};

/** Churn, attacks and deaths for the time axis. */
export function marksOf(events: readonly EventMessage[]): Mark[] {
  return events.flatMap(({ what, node, time_s }) => {
    const mark = MARKED[what];
    return mark === null ? [] : [{ x: time_s, colour: mark.colour, text: `node ${node ?? "?"} ${mark.label}` }];
  });
}
