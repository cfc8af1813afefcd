// What one can do with a run: stop it, take it up, make another like it, see its report, take its records away.

import { useRef, useState, type ReactNode } from "react";
import { go, link } from "../../app/router";
import { isLive, type RunDetail } from "../../client/documents";
import { address, post, remove, RequestError } from "../../client/request";
import { Icon } from "../../ui/icons";
import { Confirm } from "../../ui/Confirm";

export function RunActions({ run, detail, onChanged }: { run: string; detail: RunDetail; onChanged: () => void }): ReactNode {
  const [problem, setProblem] = useState<string | null>(null);
  const [asked, setAsked] = useState<"stop" | "delete" | null>(null);
  const [isStopping, setStopping] = useState(false);
  const act = async (what: () => Promise<unknown>): Promise<boolean> => {
    setProblem(null);
    try {
      await what();
      onChanged();
      return true;
    } catch (error) {
      setProblem(error instanceof RequestError ? error.message : "That did not work.");
      return false;
    }
  };
  const path = { run };
  const stop = async (): Promise<void> => {
    setAsked(null);
    setStopping(true);
    if (!(await act(() => post("/api/runs/{run}/stop", { force: false }, { path })))) setStopping(false);
  };
  const discard = async (): Promise<void> => {
    setAsked(null);
    if (await act(() => remove("/api/runs/{run}", { path }))) go({ view: "runs" });
  };
  const canResume = detail.status === "interrupted" || detail.status === "failed";
  const isRunning = isLive(detail.status);
  return (
    <div className="actions">
      {isRunning && (
        <button type="button" className="button danger" disabled={isStopping} onClick={() => setAsked("stop")}>
          <Icon name="stop" /> {isStopping ? "Stopping …" : "Stop"}
        </button>
      )}
      {canResume && (
        <button type="button" className="button primary" onClick={() => void act(() => post("/api/runs/{run}/resume", undefined, { path })).then((did) => did && window.location.reload())}>
          <Icon name="play" /> Go on
        </button>
      )}
      <a className="button" href={link({ view: "new", from: run })}><Icon name="copy" /> New from this</a>
      <a className="button" href={address("/api/runs/{run}/report", { path })} target="_blank" rel="noopener">
        <Icon name="out" /> Report
      </a>
      <Downloads run={run} />
      {!isRunning && (
        <button type="button" className="button icon" aria-label="Delete this run" title="Delete this run" onClick={() => setAsked("delete")}>
          <Icon name="trash" />
        </button>
      )}
      {problem && <p className="mistake" role="alert">{problem}</p>}
      <Confirm
        isOpen={asked === "stop"}
        title="Stop this run?"
        action="Stop it"
        onYes={() => void stop()}
        onNo={() => setAsked(null)}
      >
        Its nodes end. Records and the last models are saved first, so that it can go on later.
      </Confirm>
      <Confirm
        isOpen={asked === "delete"}
        title="Delete this run?"
        action="Delete it"
        onYes={() => void discard()}
        onNo={() => setAsked(null)}
      >
        Its directory is removed from the manager's disk: records, models, report. There is no way back.
      </Confirm>
    </div>
  );
}

const FILES = [
  { path: "/api/runs/{run}/metrics.csv", label: "All figures, CSV" },
  { path: "/api/runs/{run}/metrics.parquet", label: "All figures, Parquet" },
  { path: "/api/runs/{run}/events.csv", label: "Events, CSV" },
  { path: "/api/runs/{run}/archive", label: "The whole run, zip" },
] as const;

export function Downloads({ run }: { run: string }): ReactNode {
  const menu = useRef<HTMLDetailsElement>(null);
  return (
    <details
      className="menu"
      ref={menu}
      onBlur={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget) && menu.current) menu.current.open = false;
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape" && menu.current) menu.current.open = false;
      }}
    >
      <summary className="button"><Icon name="download" /> Download</summary>
      <ul>
        {FILES.map(({ path, label }) => (
          <li key={path}>
            <a href={address(path, { path: { run } })} download>{label}</a>
          </li>
        ))}
      </ul>
    </details>
  );
}
