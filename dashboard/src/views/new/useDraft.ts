// The scenario that is being made: what the visitor set, what it started from, and what the manager says of it.

import { useCallback, useEffect, useMemo, useState } from "react";
import type { Indicators, Mistake } from "../../client/documents";
import { post, RequestError } from "../../client/request";
import type { Field } from "../../scenario/fields";
import { withValue, type Tables } from "../../scenario/values";

const PAUSE_MS = 220;

export interface Origin {
  name: string;
  tables: Tables;
}

export interface Draft {
  origin: Origin;
  tables: Tables;
  /** Of the last draft that could work; it may be of a moment ago. */
  indicators: Indicators | null;
  mistakes: ReadonlyMap<string, Mistake>;
  problem: string | null;
  /** Whether the manager has not yet said what it thinks of the draft as it is now. */
  isPending: boolean;
  set: (field: Field, value: unknown) => void;
  replace: (origin: Origin) => void;
}

interface Verdict {
  of: Tables | null;
  mistakes: readonly Mistake[];
  problem: string | null;
}

export function useDraft(first: Origin): Draft {
  const [origin, setOrigin] = useState(first);
  const [tables, setTables] = useState(first.tables);
  const [indicators, setIndicators] = useState<Indicators | null>(null);
  const [verdict, setVerdict] = useState<Verdict>({ of: null, mistakes: [], problem: null });

  useEffect(() => {
    const stop = new AbortController();
    const timer = window.setTimeout(() => {
      post("/api/scenario/indicators", { scenario: tables }, { signal: stop.signal })
        .then((found) => {
          if (found.indicators !== null) setIndicators(found.indicators);
          setVerdict({ of: tables, mistakes: found.mistakes, problem: null });
        })
        .catch((error: unknown) => {
          if (stop.signal.aborted) return;
          const known = error instanceof RequestError;
          setVerdict({ of: tables, mistakes: known ? error.mistakes : [], problem: known ? error.message : "Something in this page went wrong." });
        });
    }, PAUSE_MS);
    return () => {
      window.clearTimeout(timer);
      stop.abort();
    };
  }, [tables]);

  const set = useCallback((field: Field, value: unknown) => setTables((before) => withValue(before, field, value)), []);
  const replace = useCallback((next: Origin) => {
    setOrigin(next);
    setTables(next.tables);
  }, []);
  const mistakes = useMemo(() => new Map(verdict.mistakes.map((mistake) => [mistake.key, mistake])), [verdict.mistakes]);
  return { origin, tables, indicators, mistakes, problem: verdict.problem, isPending: verdict.of !== tables, set, replace };
}
