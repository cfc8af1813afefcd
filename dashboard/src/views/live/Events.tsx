// What happened, the latest first.

import { useState, type ReactNode } from "react";
import { link } from "../../app/router";
import { count, duration } from "../../lib/format";
import type { RunStore } from "../../live/store";
import { useVersion } from "../../live/useRun";

const SHOWN = 60;
const COLOURS: Readonly<Record<string, string>> = { join: "c3", exit: "c4", attack: "bad", death: "bad", link: "c2", note: "c6" };

export function Events({ store, run, node = null }: { store: RunStore; run: string; node?: number | null }): ReactNode {
  useVersion(store, 500);
  const [isAll, setAll] = useState(false);
  const found = store.events.filter((event) => node === null || event.node === node).toReversed();
  const shown = isAll ? found : found.slice(0, SHOWN);
  return (
    <section className="card events" aria-labelledby="title-events">
      <header>
        <h2 id="title-events">Events</h2>
        <span className="soft small">{found.length > 0 && count(found.length, "event")}</span>
      </header>
      {found.length === 0 && <p className="soft">Nothing has happened yet: no joins, exits, attacks, deaths or lost links.</p>}
      <ol className="list" tabIndex={0} aria-label="Events, the latest first">
        {shown.map((event) => (
          <li key={event.position}>
            <time className="soft figures">{duration(event.time_s)}</time>
            <span className="kind">
              <i className="swatch" style={{ background: `var(--${COLOURS[event.what] ?? "c6"})` }} /> {event.what}
            </span>
            <span>
              {event.node !== null && <a href={link({ view: "node", run, node: event.node })}>node {event.node}</a>}
              {event.node !== null && ": "}
              {event.text}
            </span>
          </li>
        ))}
      </ol>
      {shown.length < found.length && (
        <button type="button" className="button plain" onClick={() => setAll(true)}>Show all {found.length}</button>
      )}
    </section>
  );
}
