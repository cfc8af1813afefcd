// How uPlot is to draw: quiet axes, the style sheet's colours, a band from the least to the greatest.

import uPlot from "uplot";
import { colour } from "../app/theme";
import type { Curve, Mark } from "./curves";

export interface Look {
  /** What stands on the x axis. */
  x: "time" | "round";
  /** How a value is written. */
  format: (value: number) => string;
  /** Whether the y axis begins at zero. */
  zero: boolean;
  /** No room above this. */
  most: number | null;
  /** On a time axis: up to where it goes at least, so that charts beside each other agree. */
  until?: number;
}

const FONT = '11px "Inter", system-ui, sans-serif';
const DOTS_UP_TO = 24;
const ROUND_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000];
const TIME_STEPS_S = [
  ...[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30],
  ...[1, 2, 5, 10, 20, 30].map((minutes) => 60 * minutes),
  ...[1, 2, 4, 6, 12, 24, 48, 120, 240].map((hours) => 3_600 * hours),
];

/** `look` and `marks` are asked for whenever the plot is drawn: they change more often than the plot is made. */
export function options(curves: readonly Curve[], look: () => Look, marks: () => readonly Mark[], sync: string | null): uPlot.Options {
  const isByRound = look().x === "round";
  const soft = colour("soft");
  const axis = { stroke: soft, font: FONT, ticks: { show: false }, grid: { stroke: colour("grid"), width: 1 } };
  return {
    width: 320,
    height: 180,
    padding: [8, 16, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 7 },
      drag: { x: true, y: false },
      ...(sync === null ? {} : { sync: { key: sync } }),
    },
    scales: {
      x: { time: false, range: (plot, low, high) => (isWhole(plot, low, high) ? wholeRange(plot, look()) : [low, high]) },
      y: { range: (_plot, low, high) => yRange(low, high, look()) },
    },
    axes: [
      {
        ...axis,
        size: 24,
        gap: 4,
        space: 56,
        incrs: isByRound ? ROUND_STEPS : TIME_STEPS_S,
        values: (_plot, ticks, _axis, _space, step) => ticks.map((tick) => (isByRound ? String(tick) : clock(tick, step))),
      },
      {
        ...axis,
        size: (plot, values) => Math.max(34, ...(values ?? []).map((text) => measure(plot, text) + 12)),
        gap: 5,
        values: (_plot, ticks) => ticks.map((tick) => short(look().format(tick))),
        space: 32,
      },
    ],
    series: [{}, ...curves.flatMap(seriesOf)],
    bands: curves.flatMap((curve, place) =>
      curve.low === undefined ? [] : [{ series: [3 * place + 3, 3 * place + 2] as [number, number], fill: `${colour(curve.colour)}2b` }],
    ),
    hooks: { draw: [(plot) => drawMarks(plot, marks())] },
  };
}

function seriesOf(curve: Curve): uPlot.Series[] {
  const edge = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
  const stroke = colour(curve.colour);
  const main: uPlot.Series = {
    label: curve.label,
    stroke,
    width: 2,
    spanGaps: true,
    points: { show: (_plot, _series, from, to) => to - from <= DOTS_UP_TO, size: 5, fill: stroke },
    ...(curve.dash ? { dash: [...curve.dash] } : {}),
  };
  return [main, edge, { ...edge }];
}

/** Whether these are the ends of the data, and not what a visitor zoomed to. A single place cannot be zoomed: uPlot
 * makes up a range around it. */
function isWhole(plot: uPlot, low: number | null, high: number | null): boolean {
  const x = plot.data[0];
  return x.length < 2 || low === null || high === null || (low === x[0] && high === x[x.length - 1]);
}

function wholeRange(plot: uPlot, look: Look): [number, number] {
  const x = plot.data[0];
  const last = x[x.length - 1];
  if (look.x === "time") return [0, Math.max(last ?? 0, look.until ?? 0) || 10];
  return [0.7, Math.max(last ?? 5, 2) + 0.3];
}

/** Show new data, and leave what a visitor zoomed to as it is. `before`: how the plot looked until now. */
export function feed(plot: uPlot, data: uPlot.AlignedData, before: Look): void {
  const { min, max } = plot.scales["x"] ?? {};
  const [low, high] = wholeRange(plot, before);
  const isZoomed = min != null && max != null && plot.data[0].length > 1 && (min > low || max < high);
  plot.setData(data, !isZoomed);
  if (isZoomed) plot.setScale("x", { min, max });
}

function yRange(low: number | null, high: number | null, look: Look): [number, number] {
  if (low === null || high === null) return [0, 1];
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  const bottom = look.zero ? Math.min(0, low) : low - room;
  const top = high + room;
  return [look.zero ? bottom : Math.max(bottom, low >= 0 ? 0 : bottom), look.most === null ? top : Math.min(top, Math.max(look.most, high))];
}

function drawMarks(plot: uPlot, marks: readonly Mark[]): void {
  const { ctx, bbox } = plot;
  const pixel = devicePixelRatio;
  ctx.save();
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark.x, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    const drawn = colour(mark.colour);
    ctx.globalAlpha = 0.45;
    ctx.fillStyle = drawn;
    ctx.fillRect(x - pixel / 2, bbox.top, pixel, bbox.height);
    ctx.globalAlpha = 1;
    ctx.beginPath();
    ctx.moveTo(x - 4 * pixel, bbox.top - 2 * pixel);
    ctx.lineTo(x + 4 * pixel, bbox.top - 2 * pixel);
    ctx.lineTo(x, bbox.top + 5 * pixel);
    ctx.fill();
  }
  ctx.restore();
}

/** A tick needs no zeros behind the point. */
function short(text: string): string {
  return text.replace(/\.0+(?=\D|$)/, "").replace(/(\.\d*?)0+(?=\D|$)/, "$1");
}

/** Write a tick in the largest unit that the steps between ticks are whole in. */
function clock(seconds: number, step_s: number): string {
  if (step_s >= 86_400) return `${seconds / 86_400} d`;
  if (step_s >= 3_600) return `${seconds / 3_600} h`;
  if (step_s >= 60) return `${seconds / 60} min`;
  return `${Number(seconds.toFixed(3))} s`;
}

function measure(plot: uPlot, text: string): number {
  plot.ctx.save();
  plot.ctx.font = FONT;
  const { width } = plot.ctx.measureText(text);
  plot.ctx.restore();
  return width;
}
