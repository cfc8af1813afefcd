// Where the visitor is. The place stands behind the hash, so that the manager serves one page whatever it is.

import { useSyncExternalStore } from "react";

export type Place =
  | { view: "new"; from: string | null }
  | { view: "runs" }
  | { view: "run"; run: string }
  | { view: "node"; run: string; node: number }
  | { view: "compare"; runs: readonly string[] }
  | { view: "lost" };

/** Read a place from what stands behind the hash. */
export function parse(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const asked = new URLSearchParams(query);
  const parts = path.split("/").filter(Boolean).map(decode);
  const [first, run, third, node] = parts;
  if (parts.length === 0) return { view: "runs" };
  if (first === "new" && parts.length === 1) return { view: "new", from: asked.get("from") };
  if (first === "runs" && parts.length === 1) return { view: "runs" };
  if (first === "runs" && run && parts.length === 2) return { view: "run", run };
  if (first === "runs" && run && third === "nodes" && node && /^\d{1,6}$/.test(node) && parts.length === 4) {
    return { view: "node", run, node: Number(node) };
  }
  if (first === "compare" && parts.length === 1) {
    return { view: "compare", runs: asked.getAll("run").filter(Boolean) };
  }
  return { view: "lost" };
}

/** Write a place as a link. */
export function link(place: Place): string {
  switch (place.view) {
    case "new":
      return place.from ? `#/new?${new URLSearchParams({ from: place.from })}` : "#/new";
    case "runs":
    case "lost":
      return "#/runs";
    case "run":
      return `#/runs/${encodeURIComponent(place.run)}`;
    case "node":
      return `#/runs/${encodeURIComponent(place.run)}/nodes/${place.node}`;
    case "compare":
      return `#/compare${place.runs.length > 0 ? "?" : ""}${new URLSearchParams(place.runs.map((run) => ["run", run]))}`;
  }
}

export function go(place: Place): void {
  window.location.hash = link(place);
}

/** Follow the address bar. */
export function usePlace(): Place {
  return parse(useSyncExternalStore(listen, () => window.location.hash));
}

function listen(heard: () => void): () => void {
  window.addEventListener("hashchange", heard);
  return () => window.removeEventListener("hashchange", heard);
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
