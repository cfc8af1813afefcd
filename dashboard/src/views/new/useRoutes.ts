// What the last hop would tell under every routing strategy, all else being as it is. It is asked for when somebody pauses,
// one strategy after another, so that it stands in the way of nothing.

import { useEffect, useState } from "react";
import type { Indicators } from "../../client/documents";
import { post } from "../../client/request";
import type { Tables } from "../../scenario/values";

const PAUSE_MS = 700;

export type Linkability = Indicators["linkability"];

/** By strategy: null where the scenario cannot work with it, missing as long as it is not known. */
export function useRoutes(tables: Tables, routes: readonly string[], isRight: boolean): ReadonlyMap<string, Linkability | null> {
  const [known, setKnown] = useState<{ of: Tables; found: ReadonlyMap<string, Linkability | null> }>({ of: tables, found: new Map() });
  const chosen = tables["mixnet"]?.["route"];

  useEffect(() => {
    if (!isRight) return undefined;
    const stop = new AbortController();
    const ask = async (): Promise<void> => {
      const found = new Map<string, Linkability | null>();
      for (const route of routes) {
        if (route === chosen) continue;
        const scenario = { ...tables, mixnet: { ...tables["mixnet"], route } };
        const { indicators } = await post("/api/scenario/indicators", { scenario }, { signal: stop.signal });
        found.set(route, indicators?.linkability ?? null);
        setKnown({ of: tables, found: new Map(found) });
      }
    };
    // Whatever goes wrong is said by the same question about the scenario itself.
    const timer = window.setTimeout(() => void ask().catch(() => undefined), PAUSE_MS);
    return () => {
      window.clearTimeout(timer);
      stop.abort();
    };
  }, [tables, routes, chosen, isRight]);

  return known.of === tables ? known.found : new Map();
}
