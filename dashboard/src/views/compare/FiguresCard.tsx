// What runs came to, a column each.

import type { ReactNode } from "react";
import type { RunDetail } from "../../client/documents";
import { bytes, count, duration, number, percent, UNKNOWN } from "../../lib/format";
import { Badge } from "../../ui/parts";
import type { Compared } from "./load";

interface Figure {
  what: string;
  write: (detail: RunDetail) => ReactNode;
}

const FIGURES: readonly Figure[] = [
  { what: "Status", write: (run) => <Badge status={run.status} /> },
  { what: "Nodes, world", write: (run) => `${number(run.nodes)}, ${run.backend}` },
  { what: "Rounds", write: (run) => `${run.rounds} of ${run.planned_rounds}` },
  { what: "Accuracy, mean over nodes", write: (run) => percent(run.accuracy_mean) },
  { what: "Accuracy, least node", write: (run) => percent(lastOf(run, "accuracy_min")) },
  { what: "Completeness, mean over rounds", write: (run) => percent(meanOf(run, "completeness")) },
  { what: "Round", write: (run) => duration(meanOf(run, "seconds")) },
  { what: "Round trip", write: (run) => duration(meanOf(run, "rtt_s_p50")) },
  { what: "Sent a node and round", write: (run) => bytes(meanOf(run, "bytes_sent_per_node")) },
  { what: "CPU a node and round", write: (run) => duration(meanOf(run, "cpu_s_per_node")) },
  { what: "Cover among packets", write: (run) => percent(run.network["cover_share"]) },
  { what: "Fragments late, refused, given up", write: (run) => ["late", "refused", "given_up"].map((name) => part(run, name)).join(", ") },
  { what: "On the run's clock", write: (run) => duration(run.run_clock_s) },
  { what: "In real time", write: (run) => duration(run.seconds) },
  { what: "Deaths", write: (run) => (run.deaths === 0 ? "none" : count(run.deaths, "node")) },
];

export function FiguresCard({ compared }: { compared: readonly Compared[] }): ReactNode {
  return (
    <section className="card" aria-labelledby="title-figures">
      <header><h2 id="title-figures">What they came to</h2></header>
      <div className="scroll" tabIndex={0} role="region" aria-label="Figures of the runs">
        <table className="versus">
          <thead><Heads compared={compared} /></thead>
          <tbody>
            {FIGURES.map(({ what, write }) => (
              <tr key={what}>
                <th scope="row">{what}</th>
                {compared.map(({ run, detail }) => <td key={run} className="figure">{write(detail)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export function Heads({ compared, first = "" }: { compared: readonly Compared[]; first?: string }): ReactNode {
  return (
    <tr>
      <th scope="col">{first || <span className="unseen">Figure</span>}</th>
      {compared.map(({ run, colour }) => (
        <th key={run} scope="col" className="figure">
          <i className="swatch" style={{ background: `var(--${colour})` }} /> {run}
        </th>
      ))}
    </tr>
  );
}

type Name = "accuracy_min" | "completeness" | "seconds" | "rtt_s_p50" | "bytes_sent_per_node" | "cpu_s_per_node";

function meanOf(run: RunDetail, name: Name): number | null {
  const values = run.by_round.flatMap((round) => round[name] ?? []);
  return values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

function lastOf(run: RunDetail, name: Name): number | null {
  return run.by_round.findLast((round) => round[name] !== null)?.[name] ?? null;
}

function part(run: RunDetail, name: string): string {
  const many = run.fragments[name];
  return many === undefined ? UNKNOWN : number(many);
}
