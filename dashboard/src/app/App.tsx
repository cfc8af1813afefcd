// The frame of all views: where one can go, light or dark, and the sign-in where it is needed.

import { useEffect, useState, type ReactNode } from "react";
import { remove, whenRefused } from "../client/request";
import { ComparePage } from "../views/compare/ComparePage";
import { RunPage } from "../views/live/RunPage";
import { NewExperiment } from "../views/new/NewExperiment";
import { NodePage } from "../views/node/NodePage";
import { RunsPage } from "../views/runs/RunsPage";
import { Mark } from "../ui/icons";
import { Empty, IconButton } from "../ui/parts";
import { link, usePlace, type Place } from "./router";
import { SignIn } from "./SignIn";
import { useTheme } from "./theme";

export function App(): ReactNode {
  const [isRefused, setRefused] = useState(false);
  const place = usePlace();
  useEffect(() => whenRefused(() => setRefused(true)), []);
  useEffect(() => {
    document.title = `${titleOf(place)} · unlinkabledfl`;
  }, [place]);
  if (isRefused) return <SignIn onSignedIn={() => setRefused(false)} />;
  return (
    <div className="shell">
      <a className="skip" href="#main" onClick={toContent}>To the content</a>
      <Bar place={place} onLeave={() => setRefused(true)} />
      <main className="page" id="main" tabIndex={-1}>
        <View place={place} />
      </main>
    </div>
  );
}

function Bar({ place, onLeave }: { place: Place; onLeave: () => void }): ReactNode {
  const [theme, toggle] = useTheme();
  const at = (...views: Place["view"][]): "page" | undefined => (views.includes(place.view) ? "page" : undefined);
  const leave = (): void => void remove("/api/session").finally(onLeave);
  return (
    <header className="bar">
      <a className="brand" href={link({ view: "runs" })} aria-label="unlinkabledfl, all runs"><Mark /> <span>unlinkabledfl</span></a>
      <nav aria-label="Views">
        <a href={link({ view: "new", from: null })} aria-current={at("new")} aria-label="New experiment">New<span>&nbsp;experiment</span></a>
        <a href={link({ view: "runs" })} aria-current={at("runs", "run", "node")}>Runs</a>
        <a href={link({ view: "compare", runs: [] })} aria-current={at("compare")}>Compare</a>
      </nav>
      <IconButton icon={theme === "dark" ? "sun" : "moon"} label={theme === "dark" ? "Switch to light" : "Switch to dark"} onClick={toggle} />
      <IconButton icon="exit" label="Sign out" onClick={leave} />
    </header>
  );
}

function View({ place }: { place: Place }): ReactNode {
  switch (place.view) {
    case "new":
      return <NewExperiment key={place.from} from={place.from} />;
    case "runs":
      return <RunsPage />;
    case "run":
      return <RunPage key={place.run} run={place.run} />;
    case "node":
      return <NodePage run={place.run} node={place.node} />;
    case "compare":
      return <ComparePage runs={place.runs} />;
    case "lost":
      return (
        <Empty title="There is nothing here" actions={<a className="button" href={link({ view: "runs" })}>To the runs</a>}>
          The address leads nowhere. It may have been cut off when it was copied.
        </Empty>
      );
  }
}

function titleOf(place: Place): string {
  switch (place.view) {
    case "new":
      return "New experiment";
    case "runs":
      return "Runs";
    case "run":
      return place.run;
    case "node":
      return `Node ${place.node} of ${place.run}`;
    case "compare":
      return "Compare";
    case "lost":
      return "Nothing here";
  }
}

/** The hash is taken by the router, so the skip link moves the focus by itself. */
function toContent(event: { preventDefault: () => void }): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
