// The graph of the nodes with what its colours mean, and a line on the node that was chosen.

import { useState, type ReactNode } from "react";
import { link } from "../../app/router";
import { RAMP, SHADES, shadeValue, STATES, stateLabel, stateOf, type Shade } from "../../graph/shades";
import { TopologyGraph } from "../../graph/TopologyGraph";
import type { RunStore } from "../../live/store";
import { useVersion, type OpenRun } from "../../live/useRun";

interface Props {
  open: OpenRun;
  run: string;
  selected: number | null;
  onSelect: (node: number | null) => void;
  onOpen: (node: number) => void;
}

export function Topology({ open, run, selected, onSelect, onOpen }: Props): ReactNode {
  const [shade, setShade] = useState<Shade>("state");
  const { store, topology, scenario } = open;
  const route = scenario.scenario?.mixnet?.route;
  const family = scenario.scenario?.topology?.family ?? "";
  return (
    <section className="card topology" aria-labelledby="title-topology">
      <header>
        <h2 id="title-topology">Topology</h2>
        <span className="soft small">
          {topology.nodes} nodes, {topology.edges.length} links{family && `, ${family}`}
        </span>
        <label className="actions small">
          Colour
          <select value={shade} onChange={(event) => setShade(event.target.value as Shade)}>
            {SHADES.map(({ value, label }) => (
              <option key={value} value={value}>{label}</option>
            ))}
          </select>
        </label>
      </header>
      <TopologyGraph
        store={store}
        edges={topology.edges}
        family={family}
        toAnybody={route === "overlay"}
        shade={shade}
        selected={selected}
        onSelect={onSelect}
        onOpen={onOpen}
      />
      <Legend store={store} shade={shade} />
      <p className="chosen" aria-live="polite">
        <Chosen store={store} run={run} selected={selected} />
      </p>
    </section>
  );
}

function Legend({ store, shade }: { store: RunStore; shade: Shade }): ReactNode {
  useVersion(store, 500);
  if (shade === "state") {
    const many = new Map<string, number>();
    for (const node of store.nodes) {
      const state = stateOf(node, store);
      many.set(state, (many.get(state) ?? 0) + 1);
    }
    const known = Object.keys(STATES).filter((state) => many.has(state));
    return (
      <ul className="keys figures">
        {known.map((state) => (
          <li key={state}>
            <i className="swatch" style={{ background: `var(--${STATES[state]?.colour})` }} />
            {stateLabel(state)} {many.get(state)}
          </li>
        ))}
        {store.nodes.some((node) => node.poisons) && <li><i className="swatch ringed" /> poisons</li>}
      </ul>
    );
  }
  const values = store.nodes.flatMap((node) => shadeValue(shade, node, store) ?? []);
  const format = SHADES.find(({ value }) => value === shade)?.format ?? String;
  if (values.length === 0) return <p className="soft small">Nothing measured yet.</p>;
  return (
    <div className="ramp small soft figures">
      {format(Math.min(...values))}
      <span aria-hidden="true">
        {RAMP.map((name) => <i key={name} style={{ background: `var(--${name})` }} />)}
      </span>
      {format(Math.max(...values))}
    </div>
  );
}

function Chosen({ store, run, selected }: { store: RunStore; run: string; selected: number | null }): ReactNode {
  useVersion(store, 500);
  const node = selected === null ? undefined : store.nodes[selected];
  if (node === undefined) return <span className="soft small">Choose a node by a click or the arrow keys.</span>;
  return (
    <>
      <strong>Node {node.node}</strong>: {stateLabel(stateOf(node, store))}
      {node.round > 0 && `, round ${node.round}`}
      {node.lastError && <span className="mistake"> {node.lastError}</span>} ·{" "}
      <a href={link({ view: "node", run, node: node.node })}>its page</a>
    </>
  );
}
