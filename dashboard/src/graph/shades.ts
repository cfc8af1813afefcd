// What the colour of a node may say, and how.

import { isLive } from "../client/documents";
import { bytes, duration, mebibytes, number, percent } from "../lib/format";
import type { NodeState } from "../live/nodes";
import type { RunStore } from "../live/store";

export type Shade = "state" | "round" | "accuracy" | "completeness" | "queue" | "rtt" | "cpu" | "memory" | "sent";

export interface ShadeOption {
  value: Shade;
  label: string;
  format: (value: number) => string;
}

export const SHADES: readonly ShadeOption[] = [
  { value: "state", label: "State", format: number },
  { value: "round", label: "Round", format: number },
  { value: "accuracy", label: "Accuracy", format: percent },
  { value: "completeness", label: "Completeness", format: percent },
  { value: "queue", label: "Queue", format: (value) => `${number(value)} packets` },
  { value: "rtt", label: "Round trip", format: duration },
  { value: "cpu", label: "CPU a round", format: duration },
  { value: "memory", label: "Memory", format: mebibytes },
  { value: "sent", label: "Sending rate", format: (value) => `${bytes(value)}/s` },
];

/** States of a node, in the order of a round, with the colour of each. */
export const STATES: Readonly<Record<string, { label: string; colour: string }>> = {
  train: { label: "training", colour: "c2" },
  exchange: { label: "exchanging", colour: "c1" },
  aggregate: { label: "aggregating", colour: "c5" },
  evaluate: { label: "evaluating", colour: "c3" },
  idle: { label: "between rounds", colour: "c6" },
  done: { label: "done", colour: "c3" },
  absent: { label: "not there yet", colour: "thin" },
  left: { label: "has left", colour: "thin" },
  dead: { label: "died", colour: "bad" },
};

export function stateOf(node: NodeState, store: RunStore): string {
  if (node.presence !== "present") return node.presence;
  if (!isLive(store.status)) return "done";
  return node.phase ?? "idle";
}

export function stateLabel(state: string): string {
  return STATES[state]?.label ?? state;
}

/** The value that a node's colour stands for; null: not known. */
export function shadeValue(shade: Shade, node: NodeState, store: RunStore): number | null {
  const gauge = (name: string): number | null => node.gauges.get(name) ?? null;
  const figure = (name: string): number | null => node.figures.get(name) ?? null;
  switch (shade) {
    case "state":
      return null;
    case "round":
      return node.round || null;
    case "accuracy":
      return figure("accuracy");
    case "completeness":
      return isLive(store.status) ? (gauge("completeness_now") ?? figure("completeness")) : figure("completeness");
    case "queue": {
      const own = gauge("queue_own");
      const transit = gauge("queue_transit");
      return own === null && transit === null ? null : (own ?? 0) + (transit ?? 0);
    }
    case "rtt":
      return figure("rtt_s_p50");
    case "cpu":
      return figure("cpu_s");
    case "memory":
      return figure("pss_mib");
    case "sent":
      return gauge("bytes_per_s");
  }
}

export const RAMP: readonly string[] = ["q0", "q1", "q2", "q3", "q4"];

/** Which of the five tones stands for a value between the least and the greatest. */
export function tone(value: number, low: number, high: number): string {
  const place = high > low ? (value - low) / (high - low) : 0.5;
  return RAMP[Math.min(RAMP.length - 1, Math.max(0, Math.floor(place * RAMP.length)))] ?? "q2";
}
