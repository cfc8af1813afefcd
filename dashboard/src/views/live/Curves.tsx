// All curves of a run. Their cursors move together; what happened stands on the time axis.

import { useMemo, useState, type ReactNode } from "react";
import { LineChart } from "../../charts/LineChart";
import { curvesOf, lookOf, marksOf, PLANS, type Axis } from "../../live/charts";
import type { RunStore } from "../../live/store";
import { useVersion } from "../../live/useRun";
import { Choices } from "../../ui/parts";

const REDRAW_MS = 1_000;
const NO_MARKS: never[] = [];

export function Curves({ store }: { store: RunStore }): ReactNode {
  const [axis, setAxis] = useState<Axis>("time");
  const version = useVersion(store, REDRAW_MS);
  const charts = useMemo(
    () => PLANS.map((plan) => ({ plan, look: lookOf(plan, axis, store.clock_s), curves: curvesOf(plan, store, axis) })),
    [store, axis, version],
  );
  const marks = useMemo(() => marksOf(store.events), [store, version]);
  return (
    <section className="curves" aria-labelledby="title-curves">
      <header>
        <h2 id="title-curves">Curves</h2>
        <span className="soft small">means over nodes; bands from the least to the greatest; drag to zoom, double-click for all</span>
        <Choices
          label="What stands on the x axis of figures of rounds"
          value={axis}
          options={[{ value: "time", label: "by time" }, { value: "round", label: "by round" }]}
          onChange={setAxis}
        />
      </header>
      <div className="charts">
        {charts.map(({ plan, look, curves }) => (
          <LineChart
            key={plan.title}
            title={plan.title}
            says={plan.says}
            curves={curves}
            look={look}
            marks={look.x === "time" ? marks : NO_MARKS}
            sync={`run-${look.x}`}
          />
        ))}
      </div>
    </section>
  );
}
