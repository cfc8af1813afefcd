// A run: how it stands, its topology, its curves, its nodes and what happened. The same page while it runs and afterwards.

import { useState, type ReactNode } from "react";
import { go, link } from "../../app/router";
import { isLive, type RunDetail } from "../../client/documents";
import { get } from "../../client/request";
import { useAsked } from "../../client/useAsked";
import { moment } from "../../lib/format";
import { useRun, type OpenRun } from "../../live/useRun";
import type { Connection } from "../../live/stream";
import { Badge, Loading, Notice } from "../../ui/parts";
import { Curves } from "./Curves";
import { Events } from "./Events";
import { NodeTable } from "./NodeTable";
import { Progress } from "./Progress";
import { RunActions } from "./RunActions";
import { Topology } from "./Topology";

const DETAIL_MS = 2_500;

export function RunPage({ run }: { run: string }): ReactNode {
  const { open, connection, problem } = useRun(run);
  const status = open?.store.status;
  const isRunning = status === undefined || isLive(status) || connection.state !== "over";
  const detail = useAsked(`${run} ${isRunning}`, (signal) => get("/api/runs/{run}", { path: { run }, signal }), isRunning ? DETAIL_MS : null);
  if (problem !== null) {
    return (
      <div className="stack">
        <Title run={run} detail={null} onChanged={detail.again} />
        <Notice tone="bad" title="This run cannot be shown">{problem}</Notice>
      </div>
    );
  }
  return (
    <div className="stack">
      <Title run={run} detail={detail.data} onChanged={detail.again} />
      <ConnectionNotice connection={connection} />
      {detail.data?.reason && <Notice tone={detail.data.status === "failed" ? "bad" : "warn"} title="Why it ended">{detail.data.reason}</Notice>}
      {open === null || detail.data === null ? <Loading what="Reading the run" /> : <Body run={run} open={open} detail={detail.data} />}
    </div>
  );
}

function Title({ run, detail, onChanged }: { run: string; detail: RunDetail | null; onChanged: () => void }): ReactNode {
  return (
    <div className="title">
      <h1>{detail?.name ?? run}</h1>
      {detail && <Badge status={detail.status} />}
      {detail && <RunActions run={run} detail={detail} onChanged={onChanged} />}
      <p className="small">
        <code>{run}</code>
        {detail && <> · {detail.backend}, {detail.nodes} nodes, seed {detail.seed} · begun {moment(detail.started_at)}</>} ·{" "}
        <a href={link({ view: "runs" })}>all runs</a>
      </p>
    </div>
  );
}

function ConnectionNotice({ connection }: { connection: Connection }): ReactNode {
  if (connection.state === "lost") {
    return (
      <Notice tone="warn" title="The manager does not answer">
        What is shown is of the moment before. The page tries again by itself and misses nothing; the run goes on without it.
      </Notice>
    );
  }
  return connection.state === "refused" ? <Notice tone="bad" title="The run cannot be followed">{connection.problem}</Notice> : null;
}

function Body({ run, open, detail }: { run: string; open: OpenRun; detail: RunDetail }): ReactNode {
  const [selected, setSelected] = useState<number | null>(null);
  const onOpen = (node: number): void => go({ view: "node", run, node });
  return (
    <>
      <Progress store={open.store} detail={detail} />
      <div className="live">
        <div className="stack">
          <Topology open={open} run={run} selected={selected} onSelect={setSelected} onOpen={onOpen} />
          <Events store={open.store} run={run} />
        </div>
        <Curves store={open.store} />
      </div>
      <NodeTable store={open.store} run={run} selected={selected} onSelect={setSelected} />
      {detail.notes.length > 0 && (
        <Notice tone="warn" title="What could not be written or read">{detail.notes.join(" ")}</Notice>
      )}
    </>
  );
}
