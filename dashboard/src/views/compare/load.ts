// What is needed of each run to put it beside others.

import type { Board, RunDetail, RunScenario, SeriesList } from "../../client/documents";
import { get } from "../../client/request";

export interface Compared {
  run: string;
  /** A name of the style sheet's colours. */
  colour: string;
  dash: readonly number[];
  detail: RunDetail;
  scenario: RunScenario;
  series: SeriesList;
  board: Board | null;
}

const METRICS = ["accuracy", "completeness", "rtt_s_p50", "round_s", "bytes_sent", "cpu_s", "pss_mib", "cover_share"];
const COLOURS = ["c1", "c2", "c3", "c4", "c5", "c6"];
/** Lines differ by more than their hue. */
const DASHES: readonly (readonly number[])[] = [[], [7, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 4]];

export async function loadRun(run: string, place: number, signal: AbortSignal): Promise<Compared> {
  const where = { path: { run }, signal };
  const [detail, scenario, series] = await Promise.all([
    get("/api/runs/{run}", where),
    get("/api/runs/{run}/scenario", where),
    get("/api/runs/{run}/series", { ...where, query: { metric: METRICS } }),
  ]);
  const board = detail.has_board ? await get("/api/runs/{run}/board", where) : null;
  return {
    run,
    colour: COLOURS[place % COLOURS.length] ?? "c1",
    dash: DASHES[place % DASHES.length] ?? [],
    detail,
    scenario,
    series,
    board,
  };
}
