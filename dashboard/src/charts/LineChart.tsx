// A chart with its title and a line that reads out the values under the cursor, or the last ones.

import { useEffect, useRef, type ReactNode } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "../app/theme";
import { duration } from "../lib/format";
import { columns, latest, type Curve, type Mark } from "./curves";
import { feed, options, type Look } from "./options";

interface Props {
  title: string;
  /** A sentence on what is shown. */
  says: string;
  curves: readonly Curve[];
  look: Look;
  marks?: readonly Mark[];
  /** Charts with the same key share their cursor. */
  sync?: string;
  height?: number;
  empty?: string;
}

export function LineChart(props: Props): ReactNode {
  const { title, says, curves, look, marks = [], sync, height = 168, empty = "Nothing measured yet." } = props;
  const host = useRef<HTMLDivElement>(null);
  const readout = useRef<HTMLParagraphElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shown = useRef({ curves, marks, look });
  const drawn = useRef(look);
  const [theme] = useTheme();
  // uPlot is made anew when what it draws changes its kind, and only fed when there are new values.
  const kind = JSON.stringify([theme, look.x, look.zero, look.most, sync, height, curves.map(({ label, colour, low }) => [label, colour, low !== undefined])]);

  // First, because a plot that is made anew in the same turn must be made for what is shown now.
  useEffect(() => {
    shown.current = { curves, marks, look };
  }, [curves, marks, look]);

  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const made = new uPlot(
      {
        ...options(shown.current.curves, () => shown.current.look, () => shown.current.marks, sync ?? null),
        width: Math.max(120, element.clientWidth),
        height,
      },
      columns(shown.current.curves),
      element,
    );
    made.hooks["setCursor"] = [(each) => write(readout.current, each, shown.current)];
    plot.current = made;
    drawn.current = shown.current.look;
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(120, element.clientWidth), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [kind, sync, height]);

  useEffect(() => {
    if (plot.current !== null) feed(plot.current, columns(curves), drawn.current);
    drawn.current = look;
    write(readout.current, plot.current, shown.current);
  }, [curves, marks, look]);

  const isEmpty = curves.every((curve) => curve.x.length === 0);
  return (
    <figure className="chart card">
      <figcaption>
        <h3>{title}</h3>
        <p className="readout figures" ref={readout} aria-hidden="true" />
      </figcaption>
      <div className="plot" ref={host} role="img" aria-label={`${title}. ${says} ${spoken(curves, look)}`} style={{ height }} />
      {isEmpty && <p className="nothing">{empty}</p>}
    </figure>
  );
}

type Shown = { curves: readonly Curve[]; marks: readonly Mark[]; look: Look };

const NEAR_PX = 6;

/** Write the values at the cursor, or the last ones, without going through React: the cursor moves often. */
function write(element: HTMLElement | null, plot: uPlot | null, { curves, marks, look }: Shown): void {
  if (element === null) return;
  const at = plot?.cursor.idx ?? null;
  const parts: Node[] = [];
  const x = at === null ? undefined : plot?.data[0][at];
  if (x !== undefined) parts.push(text(look.x === "round" ? `round ${x}` : duration(x)));
  curves.forEach((curve, place) => {
    const value = at === null ? latest(curve) : plot?.data[3 * place + 1]?.[at];
    if (value === null || value === undefined) return;
    const swatch = document.createElement("i");
    swatch.style.background = `var(--${curve.colour})`;
    const figure = text(curves.length > 1 ? `${curve.label} ${look.format(value)}` : look.format(value));
    figure.prepend(swatch);
    parts.push(figure);
  });
  const left = plot?.cursor.left ?? -1;
  const mark = plot && left >= 0 ? marks.find((each) => Math.abs(plot.valToPos(each.x, "x") - left) < NEAR_PX) : undefined;
  if (mark !== undefined) parts.push(text(`▾ ${mark.text}`));
  element.replaceChildren(...parts);
}

function text(content: string): HTMLElement {
  const element = document.createElement("span");
  element.textContent = content;
  return element;
}

function spoken(curves: readonly Curve[], look: Look): string {
  const values = curves.flatMap((curve) => {
    const value = latest(curve);
    return value === null ? [] : [`${curve.label}: ${look.format(value)}`];
  });
  return values.length > 0 ? `Latest: ${values.join(", ")}.` : "Nothing measured yet.";
}
