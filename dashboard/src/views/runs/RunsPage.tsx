// All runs of the manager's folder, the youngest first: what goes on, what came out, and which to put side by side.

import { useState, type ReactNode } from "react";
import { go, link } from "../../app/router";
import { isLive, type RunBrief } from "../../client/documents";
import { get } from "../../client/request";
import { useAsked } from "../../client/useAsked";
import { duration, moment, number, percent } from "../../lib/format";
import { Icon } from "../../ui/icons";
import { Badge, Empty, Loading, Meter, Notice } from "../../ui/parts";
import { COMPARED_MAX } from "../compare/ComparePage";

const REFRESH_MS = 3_000;
const PAGE = 100;

export function RunsPage(): ReactNode {
  const [most, setMost] = useState(PAGE);
  const runs = useAsked(`runs ${most}`, (signal) => get("/api/runs", { query: { most }, signal }), REFRESH_MS);
  const [picked, setPicked] = useState<readonly string[]>([]);
  const toggle = (run: string): void =>
    setPicked((before) => (before.includes(run) ? before.filter((each) => each !== run) : [...before, run].slice(-COMPARED_MAX)));
  const begin = <a className="button primary" href={link({ view: "new", from: null })}><Icon name="play" /> New experiment</a>;
  if (runs.data === null) {
    return runs.problem ? <Notice tone="bad" title="The runs cannot be listed">{runs.problem}</Notice> : <Loading what="Listing runs" />;
  }
  if (runs.data.total === 0) {
    return (
      <Empty title="No runs yet" actions={begin}>
        Configure an experiment, see what to expect of it, and launch it here. Runs that the command line left in this
        folder show up too.
      </Empty>
    );
  }
  return (
    <>
      <div className="title">
        <h1>Runs</h1>
        <div className="actions">
          <button type="button" className="button" disabled={picked.length < 2} onClick={() => go({ view: "compare", runs: picked })}>
            Compare{picked.length > 0 && ` ${picked.length}`}
          </button>
          {begin}
        </div>
        <p>{picked.length < 2 ? "Tick two or more to put them side by side." : `${picked.length} ticked; ${COMPARED_MAX} at most.`}</p>
      </div>
      {runs.problem && <Notice tone="warn">{runs.problem} What is shown is of the moment before.</Notice>}
      <div className="card scroll" tabIndex={0} role="region" aria-label="Table of runs">
        <table className="runs">
          <thead>
            <tr>
              <th><span className="unseen">Compare</span></th>
              <th scope="col">Run</th>
              <th scope="col">Status</th>
              <th scope="col">World</th>
              <th scope="col" className="figure">Nodes</th>
              <th scope="col" className="figure">Rounds</th>
              <th scope="col" className="figure">Accuracy</th>
              <th scope="col" className="figure">Took</th>
              <th scope="col">Begun</th>
            </tr>
          </thead>
          <tbody>{runs.data.runs.map((run) => <Row key={run.id} run={run} isPicked={picked.includes(run.id)} onToggle={toggle} />)}</tbody>
        </table>
      </div>
      {runs.data.runs.length < runs.data.total && (
        <button type="button" className="button plain" onClick={() => setMost((before) => Math.min(500, before + PAGE))}>
          Show more of {number(runs.data.total)}
        </button>
      )}
    </>
  );
}

function Row({ run, isPicked, onToggle }: { run: RunBrief; isPicked: boolean; onToggle: (run: string) => void }): ReactNode {
  return (
    <tr className={isPicked ? "chosen" : ""}>
      <td><input type="checkbox" checked={isPicked} aria-label={`Compare ${run.id}`} onChange={() => onToggle(run.id)} /></td>
      <th scope="row">
        <a href={link({ view: "run", run: run.id })}>{run.name}</a>
        <code className="soft">{run.id}</code>
      </th>
      <td>
        <Badge status={run.status} />
        {run.deaths > 0 && <span className="soft small"> {run.deaths} died</span>}
      </td>
      <td>{run.backend}</td>
      <td className="figure">{number(run.nodes)}</td>
      <td className="figure">
        {run.rounds} of {run.planned_rounds}
        {isLive(run.status) && <Meter share={run.planned_rounds ? run.rounds / run.planned_rounds : 0} label={`Rounds of ${run.id}`} />}
      </td>
      <td className="figure">{percent(run.accuracy_mean)}</td>
      <td className="figure">{duration(run.seconds)}</td>
      <td className="soft">{moment(run.started_at)}</td>
    </tr>
  );
}
