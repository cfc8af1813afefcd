// How far a run is, and the few figures that one looks at first.

import type { ReactNode } from "react";
import { isLive, type RunDetail } from "../../client/documents";
import { bytes, count, duration, percent } from "../../lib/format";
import type { RunStore } from "../../live/store";
import { useVersion } from "../../live/useRun";
import { Meter } from "../../ui/parts";

export function Progress({ store, detail }: { store: RunStore; detail: RunDetail }): ReactNode {
  useVersion(store, 500);
  const isRunning = isLive(detail.status);
  const present = store.nodes.filter((node) => node.presence === "present").length;
  const round = Math.min(Math.max(store.currentRound, 1), detail.planned_rounds);
  const said = [
    detail.status === "starting" ? "starting its nodes" : isRunning ? `round ${round} of ${detail.planned_rounds}` : `${count(detail.rounds, "round")} of ${detail.planned_rounds}`,
    isRunning ? `${present} of ${detail.nodes} nodes present` : null,
    `${duration(Math.max(store.clock_s, detail.run_clock_s))} on the run's clock`,
    isRunning
      ? detail.time_left_s === null ? null : `about ${duration(detail.time_left_s)} left`
      : detail.seconds === null ? null : `took ${duration(detail.seconds)}`,
  ];
  return (
    <section className="card progress" aria-label="Progress">
      <div className="far">
        <strong className="figures">{percent(detail.share_done, 0)}</strong>
        <div>
          <Meter share={detail.share_done} label="How much of the run is done" />
          <p className="soft small figures">{said.filter(Boolean).join(" · ")}</p>
        </div>
      </div>
      <dl className="tiles">
        {tiles(store, detail).map(({ what, figure, note }) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd>
              <b>{figure}</b> <span>{note}</span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

interface Tile {
  what: string;
  figure: string;
  note: string;
}

function tiles(store: RunStore, detail: RunDetail): Tile[] {
  const last = (name: string): { x: number; mean: number; low: number; high: number } | undefined => store.round(name)?.points().at(-1);
  const accuracy = last("accuracy");
  const completeness = last("completeness");
  const trip = last("rtt_s_p50");
  const cover = mean(store, "cover_share") ?? detail.network["cover_share"] ?? null;
  const sent = last("bytes_sent");
  const deaths = store.nodes.filter((node) => node.presence === "dead").length;
  return [
    { what: "Accuracy", figure: percent(accuracy?.mean), note: accuracy ? `least ${percent(accuracy.low)}` : "" },
    { what: "Completeness", figure: percent(completeness?.mean), note: completeness ? `round ${completeness.x}` : "" },
    { what: "Round trip", figure: duration(trip?.mean), note: trip ? "median" : "" },
    { what: "Cover", figure: percent(cover), note: "of packets" },
    { what: "Sent", figure: bytes(sent?.mean), note: "a node and round" },
    { what: "Deaths", figure: String(Math.max(deaths, detail.deaths)), note: deaths > 0 ? "see the events" : "" },
  ];
}

function mean(store: RunStore, name: string): number | null {
  const values = store.nodes.flatMap((node) => (node.presence === "present" ? (node.gauges.get(name) ?? []) : []));
  return values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}
