// The linkability board: how often each adversary named the right sender, beside what guessing would.

import type { ReactNode } from "react";
import { number, UNKNOWN } from "../../lib/format";
import type { Compared } from "./load";

interface Row {
  run: string;
  colour: string;
  adversary: string;
  accuracy: number | null;
  low: number | null;
  high: number | null;
  baseline: number | null;
  targets: number | null;
}

export function BoardCard({ compared }: { compared: readonly Compared[] }): ReactNode {
  const rows = compared.flatMap(rowsOf).sort((one, other) => one.adversary.localeCompare(other.adversary));
  return (
    <section className="card" aria-labelledby="title-board">
      <header>
        <h2 id="title-board">Linkability</h2>
        <span className="soft small">how often an adversary names the right sender; the tick marks what guessing would reach</span>
      </header>
      {rows.length === 0 ? (
        <p className="soft">
          No adversary was run against these. Set <code>monitoring.trace</code>, and run <code>unlinkabledfl attack</code> on
          the run's directory: its board then stands here.
        </p>
      ) : (
        <div className="scroll" tabIndex={0} role="region" aria-label="Linkability board">
          <table className="board">
            <thead>
              <tr>
                <th scope="col">Adversary</th>
                <th scope="col">Run</th>
                <th scope="col">Right senders</th>
                <th scope="col" className="figure">95 % interval</th>
                <th scope="col" className="figure">Guessing</th>
                <th scope="col" className="figure">Targets</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row, place) => (
                <tr key={place}>
                  <th scope="row">{row.adversary}</th>
                  <td><i className="swatch" style={{ background: `var(--${row.colour})` }} /> {row.run}</td>
                  <td><Right row={row} /></td>
                  <td className="figure">{row.low === null || row.high === null ? UNKNOWN : `${row.low.toFixed(3)}–${row.high.toFixed(3)}`}</td>
                  <td className="figure">{row.baseline?.toFixed(3) ?? UNKNOWN}</td>
                  <td className="figure">{number(row.targets)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Right({ row }: { row: Row }): ReactNode {
  const share = row.accuracy ?? 0;
  return (
    <span className="bars right">
      <span>{row.accuracy?.toFixed(3) ?? UNKNOWN}</span>
      <span className="track" aria-hidden="true">
        <span style={{ width: `${share * 100}%`, background: `var(--${row.colour})` }} />
        {row.baseline !== null && <i style={{ left: `${row.baseline * 100}%` }} />}
      </span>
    </span>
  );
}

function rowsOf({ run, colour, board }: Compared): Row[] {
  return (board?.board ?? []).map((row) => ({
    run,
    colour,
    adversary: String(row["adversary"] ?? "?"),
    accuracy: figure(row["accuracy"]),
    low: figure(row["ci_low"]),
    high: figure(row["ci_high"]),
    baseline: figure(row["baseline"]),
    targets: figure(row["targets"]),
  }));
}

function figure(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
