// When rounds were reported, for those of which only history tells: curves over rounds come without a time.
//
// A round was reported when half of the nodes had gone on to the next, which the gauge `round` shows. Where nobody sampled
// it, rounds are laid end to end by their mean length.

import type { Series } from "../client/documents";
import type { RoundPoint } from "./rounds";

export function reportedAt(series: readonly Series[], clock_s: number): RoundPoint[] {
  const lengths = series.find((each) => each.metric === "round_s" && each.of === "round")?.points ?? [];
  const gauge = series.find((each) => each.metric === "round" && each.of === "moment")?.points ?? [];
  let before_s = 0;
  let next = 0;
  return lengths.map(({ x: round, mean, nodes }) => {
    while (next < gauge.length && (gauge[next]?.mean ?? 0) < round + 0.5) next += 1;
    const seen_s = gauge[next]?.x;
    const laid_s = before_s + mean;
    const at_s = gauge.length === 0 ? Math.min(laid_s, clock_s) : (seen_s ?? Math.max(before_s, Math.min(laid_s, clock_s)));
    before_s = at_s;
    return { x: round, mean: at_s, low: at_s, high: at_s, nodes };
  });
}
