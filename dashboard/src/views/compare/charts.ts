// The curves of several runs on common axes, and the same as a table for other tools.

import type { Curve } from "../../charts/curves";
import type { Look } from "../../charts/options";
import type { Series } from "../../client/documents";
import { reportedAt } from "../../live/reported";
import { bytes, duration, mebibytes, percent } from "../../lib/format";
import type { Compared } from "./load";

export type Against = "round" | "time";

interface Plan {
  title: string;
  says: string;
  metric: string;
  format: (value: number) => string;
  zero: boolean;
  most: number | null;
}

const PLANS: readonly Plan[] = [
  { title: "Accuracy", says: "Of the aggregated model on the test data, mean over nodes.", metric: "accuracy", format: (value) => percent(value), zero: false, most: null },
  { title: "Completeness", says: "Share of the expected fragments that had come in time.", metric: "completeness", format: (value) => percent(value), zero: true, most: 1 },
  { title: "Length of a round", says: "From the beginning of a round to its end.", metric: "round_s", format: duration, zero: true, most: null },
  { title: "Round trip", says: "From a fragment's departure to its acknowledgement; the median.", metric: "rtt_s_p50", format: duration, zero: true, most: null },
  { title: "Sent a round", says: "Bytes that a node put on its links in a round.", metric: "bytes_sent", format: bytes, zero: true, most: null },
  { title: "CPU a round", says: "CPU time of a node in a round.", metric: "cpu_s", format: duration, zero: true, most: null },
  { title: "Memory", says: "Memory of a node.", metric: "pss_mib", format: mebibytes, zero: true, most: null },
];

export interface Chart {
  title: string;
  says: string;
  look: Look;
  curves: Curve[];
}

export function chartsOf(compared: readonly Compared[], against: Against): Chart[] {
  return PLANS.flatMap((plan) => {
    const curves = compared.flatMap((each) => curveOf(each, plan.metric, against, labelOf(each, compared), compared.length <= 2));
    const { title, says, format, zero, most } = plan;
    return curves.length === 0 ? [] : [{ title, says, look: { x: against, format, zero, most }, curves }];
  });
}

/** A run's name where it is the only one so called, else its id. */
function labelOf({ run, detail }: Compared, compared: readonly Compared[]): string {
  return compared.filter((each) => each.detail.name === detail.name).length > 1 ? run : detail.name;
}

function curveOf({ detail, series, colour, dash }: Compared, metric: string, against: Against, label: string, withBand: boolean): Curve[] {
  const found = ofRounds(series.series, metric);
  if (found === null) return [];
  const times = new Map(reportedAt(series.series, detail.run_clock_s).map((point) => [point.x, point.mean]));
  const points = found.points.flatMap((point) => {
    const x = against === "round" ? point.x : times.get(point.x);
    return x === undefined ? [] : [{ ...point, x }];
  });
  const band = withBand ? { low: points.map(({ low }) => low), high: points.map(({ high }) => high) } : {};
  return [{ label, colour, x: points.map(({ x }) => x), y: points.map(({ mean }) => mean), ...band, ...(dash.length > 0 ? { dash } : {}) }];
}

/** Rounds of all runs as lines of `run,round,metric,mean,low,high,nodes`. */
export function csvOf(compared: readonly Compared[]): string {
  const lines = ["run,round,metric,mean,low,high,nodes"];
  for (const { run, series } of compared) {
    for (const { metric, of, points } of series.series) {
      if (of !== "round") continue;
      for (const { x, mean, low, high, nodes } of points) lines.push([run, x, metric, mean, low, high, nodes].join(","));
    }
  }
  return `${lines.join("\n")}\n`;
}

function ofRounds(series: readonly Series[], metric: string): Series | null {
  return series.find((each) => each.metric === metric && each.of === "round") ?? null;
}
