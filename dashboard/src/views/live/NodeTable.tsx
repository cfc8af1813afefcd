// The nodes as a table: what the graph shows by colour, in figures, and in any order.

import { useState, type ReactNode } from "react";
import { link } from "../../app/router";
import { SHADES, shadeValue, STATES, stateLabel, stateOf, type Shade } from "../../graph/shades";
import { UNKNOWN } from "../../lib/format";
import type { NodeState } from "../../live/nodes";
import type { RunStore } from "../../live/store";
import { useVersion } from "../../live/useRun";

const COLUMNS: readonly Shade[] = ["round", "accuracy", "completeness", "queue", "rtt", "cpu", "memory", "sent"];
const SHOWN = 40;
type Order = { by: Shade | "node"; falling: boolean };

export function NodeTable(props: { store: RunStore; run: string; selected: number | null; onSelect: (node: number) => void }): ReactNode {
  const { store, run, selected, onSelect } = props;
  useVersion(store, 1_000);
  const [order, setOrder] = useState<Order>({ by: "node", falling: false });
  const [isAll, setAll] = useState(false);
  const sorted = sort(store, order);
  const shown = isAll ? sorted : sorted.slice(0, SHOWN);
  const columns = SHADES.filter(({ value }) => COLUMNS.includes(value));
  const head = (by: Order["by"], label: string): ReactNode => (
    <th key={by} scope="col" className={by === "node" ? "" : "figure"} aria-sort={order.by === by ? (order.falling ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={() => setOrder({ by, falling: order.by === by ? !order.falling : by !== "node" })}>
        {label}
        {order.by === by && <span aria-hidden="true">{order.falling ? " ↓" : " ↑"}</span>}
      </button>
    </th>
  );
  return (
    <section className="card nodes" aria-labelledby="title-nodes">
      <header>
        <h2 id="title-nodes">Nodes</h2>
      </header>
      <div className="scroll list" tabIndex={0} role="region" aria-label="Table of nodes">
        <table>
          <thead>
            <tr>
              {head("node", "Node")}
              <th scope="col">State</th>
              {columns.map(({ value, label }) => head(value, label))}
            </tr>
          </thead>
          <tbody>
            {shown.map((node) => (
              <tr key={node.node} className={node.node === selected ? "chosen" : ""} onClick={() => onSelect(node.node)}>
                <th scope="row"><a href={link({ view: "node", run, node: node.node })}>{node.node}</a></th>
                <td><State node={node} store={store} /></td>
                {columns.map(({ value, format }) => {
                  const figure = shadeValue(value, node, store);
                  return <td key={value} className="figure">{figure === null ? UNKNOWN : format(figure)}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < sorted.length && (
        <button type="button" className="button plain" onClick={() => setAll(true)}>Show all {sorted.length}</button>
      )}
    </section>
  );
}

export function State({ node, store }: { node: NodeState; store: RunStore }): ReactNode {
  const state = stateOf(node, store);
  return (
    <span className="state">
      <i className="swatch" style={{ background: `var(--${STATES[state]?.colour ?? "c6"})` }} />
      {stateLabel(state)}
      {node.poisons && ", poisons"}
    </span>
  );
}

function sort(store: RunStore, { by, falling }: Order): NodeState[] {
  const sign = falling ? -1 : 1;
  if (by === "node") return [...store.nodes].sort((one, other) => sign * (one.node - other.node));
  const value = (node: NodeState): number | null => shadeValue(by, node, store);
  return [...store.nodes].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1; // what is not known comes last
    return sign * (a - b);
  });
}
