// Curves that may have different places on the x axis, brought onto one axis for uPlot.

import uPlot from "uplot";

export interface Curve {
  label: string;
  /** A name of the style sheet's colours, such as `c1`. */
  colour: string;
  x: readonly number[];
  y: readonly (number | null)[];
  low?: readonly (number | null)[];
  high?: readonly (number | null)[];
  dash?: readonly number[];
}

export interface Mark {
  x: number;
  colour: string;
  text: string;
}

/** Columns for uPlot: x, then y, low and high of every curve. */
export function columns(curves: readonly Curve[]): uPlot.AlignedData {
  if (curves.length === 0) return [[]];
  const tables = curves.map(({ x, y, low, high }) => [x, y, low ?? none(x), high ?? none(x)] as unknown as uPlot.AlignedData);
  return uPlot.join(tables, tables.map(() => [0, 1, 1, 1]));
}

/** The last value that a curve has. */
export function latest(curve: Curve): number | null {
  for (let place = curve.y.length - 1; place >= 0; place -= 1) {
    const value = curve.y[place];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

function none(x: readonly number[]): null[] {
  return new Array<null>(x.length).fill(null);
}
