// A run for a page: its history is asked for once, then its stream is followed.

import { useCallback, useEffect, useState, useSyncExternalStore } from "react";
import type { Message, RunScenario, Topology } from "../client/documents";
import { get, RequestError } from "../client/request";
import { METRICS } from "./metrics";
import { FrameBatch } from "./frames";
import { RunStore } from "./store";
import { Stream, type Connection } from "./stream";

export interface OpenRun {
  store: RunStore;
  topology: Topology;
  scenario: RunScenario;
}

export interface Followed {
  open: OpenRun | null;
  connection: Connection;
  problem: string | null;
}

export function useRun(run: string): Followed {
  const [state, setState] = useState<Followed & { run: string }>(() => nothing(run));

  useEffect(() => {
    const stop = new AbortController();
    let stream: Stream | null = null;
    let batch: FrameBatch<Message> | null = null;
    setState(nothing(run));
    const open = async (): Promise<void> => {
      try {
        const { opened, position } = await load(run, stop.signal);
        if (stop.signal.aborted) return;
        batch = new FrameBatch((messages) => opened.store.apply(messages));
        stream = new Stream({
          run,
          after: position,
          onMessage: (message) => batch?.push(message),
          onConnection: (connection) => setState((before) => ({ ...before, connection })),
        });
        setState({ run, open: opened, connection: { state: "connecting" }, problem: null });
        void stream.follow();
      } catch (error) {
        if (stop.signal.aborted) return;
        const problem = error instanceof RequestError ? error.message : "Something in this page went wrong.";
        setState((before) => ({ ...before, problem }));
      }
    };
    void open();
    return () => {
      stop.abort();
      stream?.close();
      batch?.stop();
    };
  }, [run]);

  return state.run === run ? state : nothing(run);
}

/** Be drawn again when the run has told something, but not more often than this. */
export function useVersion(store: RunStore, everyMs: number): number {
  const subscribe = useCallback(
    (heard: () => void) => {
      let timer: number | null = null;
      let last = 0;
      const wake = (): void => {
        if (timer !== null) return;
        timer = window.setTimeout(() => {
          timer = null;
          last = performance.now();
          heard();
        }, Math.max(0, last + everyMs - performance.now()));
      };
      const forget = store.subscribe(wake);
      return () => {
        forget();
        if (timer !== null) window.clearTimeout(timer);
      };
    },
    [store, everyMs],
  );
  return useSyncExternalStore(subscribe, () => store.version);
}

async function load(run: string, signal: AbortSignal): Promise<{ opened: OpenRun; position: number }> {
  const where = { path: { run }, signal };
  const [brief, topology, scenario, nodes] = await Promise.all([
    get("/api/runs/{run}", where),
    get("/api/runs/{run}/topology", where),
    get("/api/runs/{run}/scenario", where),
    get("/api/runs/{run}/nodes", where),
  ]);
  const [series, events] = await Promise.all([
    get("/api/runs/{run}/series", { ...where, query: { metric: METRICS } }),
    get("/api/runs/{run}/events", where),
  ]);
  const store = new RunStore(Math.max(brief.nodes, nodes.nodes.length), brief.status);
  store.reason = brief.reason;
  store.seed({ nodes, series, events: events.events });
  return { opened: { store, topology, scenario }, position: nodes.position };
}

function nothing(run: string): Followed & { run: string } {
  return { run, open: null, connection: { state: "connecting" }, problem: null };
}
