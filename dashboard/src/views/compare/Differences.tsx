// In which settings the scenarios of runs differ.

import type { ReactNode } from "react";
import type { Compared } from "./load";
import { Heads } from "./FiguresCard";

export function Differences({ compared }: { compared: readonly Compared[] }): ReactNode {
  const flat = compared.map(({ scenario }) => flatten(scenario.scenario));
  const keys = [...new Set(flat.flatMap((settings) => [...settings.keys()]))];
  const differing = keys.filter((key) => new Set(flat.map((settings) => settings.get(key))).size > 1);
  if (compared.length < 2) return null;
  return (
    <section className="card" aria-labelledby="title-settings">
      <header>
        <h2 id="title-settings">Settings that differ</h2>
        <span className="soft small">{keys.length - differing.length} are the same</span>
      </header>
      {differing.length === 0 ? (
        <p className="soft">None: the same scenario, run again.</p>
      ) : (
        <div className="scroll" tabIndex={0} role="region" aria-label="Settings that differ">
          <table className="versus">
            <thead><Heads compared={compared} /></thead>
            <tbody>
              {differing.map((key) => (
                <tr key={key}>
                  <th scope="row"><code>{key}</code></th>
                  {compared.map(({ run }, place) => <td key={run} className="figure">{flat[place]?.get(key) ?? "–"}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function flatten(scenario: object | null): Map<string, string> {
  const found = new Map<string, string>();
  for (const [section, table] of Object.entries(scenario ?? {})) {
    for (const [key, value] of Object.entries((table ?? {}) as Record<string, unknown>)) {
      found.set(`${section}.${key}`, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
  }
  return found;
}
