// What the manager says, for a component: asked when it is shown, and again as often as wanted.

import { useCallback, useEffect, useRef, useState } from "react";
import { RequestError } from "./request";

export interface Asked<T> {
  data: T | null;
  problem: string | null;
  again: () => void;
}

/** Ask now, and every so many milliseconds; `key` says when it is another question. */
export function useAsked<T>(key: string, ask: (signal: AbortSignal) => Promise<T>, everyMs: number | null = null): Asked<T> {
  const [known, setKnown] = useState<{ key: string; data: T | null; problem: string | null }>({ key, data: null, problem: null });
  const [turn, setTurn] = useState(0);
  const question = useRef(ask);
  useEffect(() => {
    question.current = ask;
  });

  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const once = async (): Promise<void> => {
      try {
        const data = await question.current(stop.signal);
        if (stop.signal.aborted) return;
        setKnown({ key, data, problem: null });
      } catch (error) {
        if (stop.signal.aborted) return;
        const problem = error instanceof RequestError ? error.message : "Something in this page went wrong.";
        setKnown((before) => ({ key, data: before.key === key ? before.data : null, problem }));
      }
      if (everyMs !== null) timer = window.setTimeout(() => void once(), everyMs);
    };
    void once();
    return () => {
      stop.abort();
      window.clearTimeout(timer);
    };
  }, [key, everyMs, turn]);

  const again = useCallback(() => setTurn((before) => before + 1), []);
  return known.key === key ? { data: known.data, problem: known.problem, again } : { data: null, problem: null, again };
}
