// Beside the form: the button that begins the run, and what to expect of it.

import type { ReactNode } from "react";
import { count, duration } from "../../lib/format";
import { Icon } from "../../ui/icons";
import { Loading, Notice } from "../../ui/parts";
import { Expectations } from "./Expectations";
import type { Draft } from "./useDraft";
import { useRoutes } from "./useRoutes";

interface Props {
  draft: Draft;
  /** The routing strategies that there are. */
  routes: readonly string[];
  isBusy: boolean;
  problem: string | null;
  onLaunch: () => void;
  onFind: (key: string) => void;
}

export function Launch({ draft, routes, isBusy, problem, onLaunch, onFind }: Props): ReactNode {
  const { indicators, mistakes, isPending } = draft;
  const isRight = mistakes.size === 0 && draft.problem === null;
  const others = useRoutes(draft.tables, routes, isRight && !isPending);
  return (
    <aside className="side expected" aria-label="What to expect">
      <div className="card launch">
        <p className="small" role="status">{summary(draft)}</p>
        <button type="button" className="button primary" disabled={!isRight || isBusy || isPending} onClick={onLaunch}>
          <Icon name="play" /> {isBusy ? "Launching …" : "Launch"}
        </button>
      </div>
      {problem !== null && <Notice tone="bad" title="It was not launched">{problem}</Notice>}
      {draft.problem !== null && <Notice tone="bad">{draft.problem}</Notice>}
      {mistakes.size > 0 && (
        <div className="cautions">
          {[...mistakes.values()].map((mistake) => (
            <Notice key={mistake.key} tone="bad">
              <button type="button" onClick={() => onFind(mistake.key)}>{mistake.key}</button> takes {mistake.takes}
              {mistake.hint ? `; ${mistake.hint}` : ""}.
            </Notice>
          ))}
        </div>
      )}
      {!isRight && indicators !== null && <p className="soft small">Below: of the last scenario that could work.</p>}
      {indicators === null ? isRight && <Loading what="Reckoning what to expect" /> : <Expectations found={indicators} routes={routes} route={String(draft.tables["mixnet"]?.["route"])} others={others} onFind={onFind} />}
    </aside>
  );
}

function summary({ indicators, mistakes, problem }: Draft): string {
  if (mistakes.size > 0) return `${count(mistakes.size, "setting")} must be put right first.`;
  if (problem !== null) return "The manager could not check this.";
  if (indicators === null) return "Checking …";
  const where = indicators.backend === "simulation" ? "in virtual time" : "as real nodes";
  const wall = indicators.resources.wall_s === null ? "" : `, about ${duration(indicators.resources.wall_s)}`;
  return `${count(indicators.graph.nodes, "node")} ${where}, ${count(indicators.rounds, "round")}${wall}.`;
}
