// Runs side by side: what was asked of them, what they learned, what it cost, and how well they could be linked.

import { useMemo, useState, type ReactNode } from "react";
import { link } from "../../app/router";
import { LineChart } from "../../charts/LineChart";
import { get } from "../../client/request";
import { useAsked } from "../../client/useAsked";
import { Icon } from "../../ui/icons";
import { Choices, Empty, Loading, Notice } from "../../ui/parts";
import { Downloads } from "../live/RunActions";
import { BoardCard } from "./BoardCard";
import { chartsOf, csvOf, type Against } from "./charts";
import { Differences } from "./Differences";
import { loadRun, type Compared } from "./load";
import { FiguresCard } from "./FiguresCard";

export const COMPARED_MAX = 6;

export function ComparePage({ runs }: { runs: readonly string[] }): ReactNode {
  const wanted = [...new Set(runs)].slice(0, COMPARED_MAX);
  const asked = useAsked(`compare ${wanted.join(" ")}`, (signal) => Promise.all(wanted.map((run, place) => loadRun(run, place, signal))));
  if (wanted.length === 0) {
    return (
      <Empty title="Nothing to compare" actions={<a className="button primary" href={link({ view: "runs" })}>To the runs</a>}>
        Tick two or more runs in the list, and their curves, costs and settings stand side by side here.
      </Empty>
    );
  }
  if (asked.problem !== null) return <Notice tone="bad" title="These runs cannot be compared">{asked.problem}</Notice>;
  if (asked.data === null) return <Loading what="Reading the runs" />;
  return <Body compared={asked.data} />;
}

function Body({ compared }: { compared: readonly Compared[] }): ReactNode {
  const [against, setAgainst] = useState<Against>("round");
  const charts = useMemo(() => chartsOf(compared, against), [compared, against]);
  const csv = `data:text/csv;charset=utf-8,${encodeURIComponent(csvOf(compared))}`;
  return (
    <div className="stack">
      <div className="title">
        <h1>{compared.length === 1 ? "One run" : `${compared.length} runs side by side`}</h1>
        <div className="actions">
          <a className="button" href={csv} download="comparison.csv"><Icon name="download" /> Export these curves, CSV</a>
        </div>
      </div>
      <ul className="compared">
        {compared.map(({ run, colour, dash, detail }) => (
          <li className="card" key={run}>
            <svg viewBox="0 0 28 8" width="28" height="8" aria-hidden="true">
              <path d="M0 4h28" stroke={`var(--${colour})`} strokeWidth="3" strokeDasharray={dash.join(" ")} />
            </svg>
            <a href={link({ view: "run", run })}>{detail.name}</a>
            <code className="soft">{run}</code>
            <Downloads run={run} />
          </li>
        ))}
      </ul>
      {compared.length === 2 && compared[0] && compared[1] && <Difference one={compared[0]} other={compared[1]} />}
      <section className="curves" aria-labelledby="title-curves">
        <header>
          <h2 id="title-curves">Curves</h2>
          <Choices
            label="What stands on the x axis"
            value={against}
            options={[{ value: "round", label: "by round" }, { value: "time", label: "by the run's clock" }]}
            onChange={setAgainst}
          />
        </header>
        <div className="charts wide">
          {charts.map(({ title, says, look, curves }) => (
            <LineChart key={title} title={title} says={says} look={look} curves={curves} sync={`compare-${against}`} height={200} />
          ))}
        </div>
      </section>
      <FiguresCard compared={compared} />
      <BoardCard compared={compared} />
      <Differences compared={compared} />
    </div>
  );
}

/** Whether two runs differ in accuracy by more than their nodes do among each other. */
function Difference({ one, other }: { one: Compared; other: Compared }): ReactNode {
  const asked = useAsked(`${one.run} ${other.run}`, (signal) => get("/api/compare", { query: { a: one.run, b: other.run }, signal }));
  const accuracy = asked.data?.accuracy as { difference: number; ci_low: number; ci_high: number; paired: boolean } | null | undefined;
  if (asked.problem !== null) return <Notice tone="warn">{asked.problem}</Notice>;
  if (!accuracy) return null;
  const points = (share: number): string => `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.abs(share * 100).toFixed(1)}`;
  const isClear = accuracy.ci_low > 0 || accuracy.ci_high < 0;
  return (
    <Notice tone={isClear ? "good" : "info"} title={`Accuracy of ${other.run} against ${one.run}: ${points(accuracy.difference)} points`}>
      95 % interval over nodes{accuracy.paired && ", paired"}: {points(accuracy.ci_low)} to {points(accuracy.ci_high)}.{" "}
      {isClear ? "The difference is clear of what nodes differ among each other." : "That is within what nodes differ among each other."}{" "}
      Another seed would move all nodes of a run together, which two runs cannot show.
    </Notice>
  );
}
