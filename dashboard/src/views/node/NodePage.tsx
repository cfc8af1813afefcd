// A node's own page: how it stands, its curves, what happened to it, and the end of its log.

import { useMemo, type ReactNode } from "react";
import { link } from "../../app/router";
import { LineChart } from "../../charts/LineChart";
import { isLive } from "../../client/documents";
import { get } from "../../client/request";
import { useAsked } from "../../client/useAsked";
import { SHADES, shadeValue } from "../../graph/shades";
import { curvesOf, lookOf, marksOf, PLANS } from "../../live/charts";
import { METRICS } from "../../live/metrics";
import { RunStore } from "../../live/store";
import { useRun, useVersion, type OpenRun } from "../../live/useRun";
import { UNKNOWN } from "../../lib/format";
import { Loading, Notice } from "../../ui/parts";
import { Events } from "../live/Events";
import { State } from "../live/NodeTable";

const REFRESH_MS = 3_000;

export function NodePage({ run, node }: { run: string; node: number }): ReactNode {
  const { open, problem } = useRun(run);
  if (problem !== null) return <Notice tone="bad" title="This run cannot be shown">{problem}</Notice>;
  if (open === null) return <Loading what="Reading the run" />;
  if (open.store.nodes[node] === undefined) {
    return <Notice tone="bad" title={`There is no node ${node}`}>The run has {open.store.nodes.length} nodes, from 0.</Notice>;
  }
  return <Body open={open} run={run} node={node} />;
}

function Body({ open, run, node: index }: { open: OpenRun; run: string; node: number }): ReactNode {
  const { store, topology } = open;
  useVersion(store, 500);
  const node = store.nodes[index];
  const many = store.nodes.length;
  const neighbours = topology.edges.flatMap(([one, other]) => (one === index ? [other] : other === index ? [one] : []));
  if (node === undefined) return null;
  return (
    <div className="stack">
      <div className="title">
        <h1>Node {index}</h1>
        <State node={node} store={store} />
        <div className="actions">
          <a className="button" href={link({ view: "node", run, node: (index + many - 1) % many })}>Previous</a>
          <a className="button" href={link({ view: "node", run, node: (index + 1) % many })}>Next</a>
        </div>
        <p className="small">
          of <a href={link({ view: "run", run })}>{run}</a> · linked with{" "}
          {neighbours.length === 0 ? "nobody" : neighbours.sort((one, other) => one - other).map((each, place) => (
            <span key={each}>{place > 0 && ", "}<a href={link({ view: "node", run, node: each })}>{each}</a></span>
          ))}
        </p>
      </div>
      {node.lastError && <Notice tone="bad" title="Its last error">{node.lastError}</Notice>}
      {node.poisons && <Notice tone="warn">This node poisons what it sends, as the scenario asks.</Notice>}
      <section className="card" aria-label="Latest figures">
        <dl className="tiles">
          {SHADES.filter(({ value }) => value !== "state").map(({ value, label, format }) => {
            const figure = shadeValue(value, node, store);
            return (
              <div key={value}>
                <dt>{label}</dt>
                <dd><b>{figure === null ? UNKNOWN : format(figure)}</b></dd>
              </div>
            );
          })}
        </dl>
      </section>
      <NodeCurves run={run} node={index} store={store} />
      <div className="below">
        <Events store={store} run={run} node={index} />
        <Log run={run} node={index} isRunning={isLive(store.status)} />
      </div>
    </div>
  );
}

/** Curves of one node: asked for again and again, so that a run of many nodes need not be kept node by node. */
function NodeCurves({ run, node, store }: { run: string; node: number; store: RunStore }): ReactNode {
  const series = useAsked(
    `${run}/${node}`,
    (signal) => get("/api/runs/{run}/series", { path: { run }, query: { metric: METRICS, node }, signal }),
    isLive(store.status) ? REFRESH_MS : null,
  );
  const charts = useMemo(() => {
    const own = new RunStore(0, store.status);
    if (series.data) own.seed({ nodes: { nodes: [], clock_s: store.clock_s, position: 0 }, series: series.data, events: [] });
    const marks = marksOf(store.events.filter((event) => event.node === node));
    return PLANS.map((plan) => ({ plan, look: lookOf(plan, "time", store.clock_s), curves: curvesOf(plan, own, "time"), marks }));
  }, [series.data, store, node]);
  return (
    <div className="charts wide">
      {series.problem && <Notice tone="warn">{series.problem}</Notice>}
      {charts.map(({ plan, look, curves, marks }) => (
        <LineChart key={plan.title} title={plan.title} says={plan.says} curves={curves} look={look} marks={marks} sync={`node-${node}`} />
      ))}
    </div>
  );
}

function Log({ run, node, isRunning }: { run: string; node: number; isRunning: boolean }): ReactNode {
  const log = useAsked(`${run}/${node}/log`, (signal) => get("/api/runs/{run}/log", { path: { run }, query: { node }, signal }), isRunning ? REFRESH_MS : null);
  return (
    <section className="card log" aria-labelledby="title-log">
      <header>
        <h2 id="title-log">Log</h2>
        {log.data?.is_cut && <span className="soft small">its end</span>}
      </header>
      {log.data?.text ? <pre tabIndex={0}>{log.data.text}</pre> : <p className="soft">{log.problem ?? "It has written nothing."}</p>}
    </section>
  );
}
