// Which settings matter under which others, and which ones most people want to see. A setting that is not named here is
// always shown, under "more". A test holds these names against the schema.

import type { Tables } from "./values";

type Get = (path: string) => unknown;

/** A setting has no effect unless this holds. */
const NEEDS: Readonly<Record<string, (get: Get) => boolean>> = {
  "learning.alpha": (get) => get("learning.partition") === "dirichlet",
  "learning.shards_per_node": (get) => get("learning.partition") === "shards",
  "learning.momentum": (get) => get("learning.optimizer") === "sgd",
  "learning.nesterov": (get) => get("learning.optimizer") === "sgd",
  "learning.final_rate": (get) => get("learning.schedule") !== "constant",
  "learning.dp_clip": (get) => Number(get("learning.dp_noise")) > 0,
  "learning.dp_delta": (get) => Number(get("learning.dp_noise")) > 0,
  "learning.training_time_s": (get) => get("run.backend") === "simulation",
  "topology.degree": (get) => !["ring", "full", "file"].includes(String(get("topology.family"))),
  "topology.rewire": (get) => get("topology.family") === "small_world",
  "topology.file": (get) => get("topology.family") === "file",
  "topology.seed": (get) => ["random_regular", "small_world"].includes(String(get("topology.family"))),
  "mixnet.delay_mean_s": (get) => get("mixnet.mixer") !== "off",
  "mixnet.delay_deviation_s": (get) => get("mixnet.mixer") === "outbox",
  "mixnet.outbox_size": (get) => get("mixnet.mixer") === "outbox",
  "mixnet.refill_at": (get) => get("mixnet.mixer") === "outbox",
  "mixnet.emission_rate_per_s": (get) => get("mixnet.mixer") === "poisson",
  "mixnet.loop_rate_per_s": (get) => get("mixnet.mixer") === "poisson",
  "mixnet.cover": (get) => get("mixnet.mixer") !== "off",
  "mixnet.exchange_hops": (get) => get("mixnet.exchange") === "within",
  "payload.bits": (get) => get("payload.codec") === "fit",
  "payload.selection": (get) => Number(get("payload.ratio")) < 1,
  "aggregation.staleness_decay": (get) => get("aggregation.staleness") === "weight",
  "aggregation.cadence_s": (get) => get("aggregation.completion") === "cadence",
  "attack.nodes": (get) => get("attack.kind") !== "none",
  "attack.magnitude": (get) => get("attack.kind") !== "none",
  "attack.chosen": (get) => get("attack.kind") !== "none",
  "process.cores": (get) => get("process.pin") === true,
};

/** Whole sections that belong to one world. */
const WORLDS: Readonly<Record<string, (backend: string) => boolean>> = {
  links: (backend) => backend === "simulation",
  simulation: (backend) => backend === "simulation",
  process: (backend) => backend !== "simulation", // containers are real nodes too: cores, turns and time limits
  container: (backend) => backend === "container",
};

const PROMINENT: ReadonlySet<string> = new Set([
  "run.name", "run.seed", "run.rounds", "run.backend",
  "learning.dataset", "learning.model", "learning.partition", "learning.alpha", "learning.shards_per_node",
  "learning.learning_rate", "learning.epochs", "learning.batch_size",
  "topology.nodes", "topology.family", "topology.degree", "topology.rewire", "topology.file", "topology.join",
  "topology.exit",
  "mixnet.route", "mixnet.path_length", "mixnet.mixer", "mixnet.delay_mean_s", "mixnet.delay_deviation_s",
  "mixnet.outbox_size", "mixnet.emission_rate_per_s", "mixnet.loop_rate_per_s", "mixnet.cover", "mixnet.exchange",
  "mixnet.exchange_hops", "mixnet.key_layer",
  "payload.codec", "payload.bits", "payload.ratio", "payload.selection",
  "aggregation.rule", "aggregation.byzantine", "aggregation.completion", "aggregation.cadence_s", "aggregation.deadline_s",
  "attack.kind", "attack.nodes", "attack.magnitude", "attack.chosen",
  "links.latency_s", "links.loss",
  "simulation.packets",
  "process.pin", "process.cores",
  "monitoring.gauges_interval_s", "monitoring.evaluate_every", "monitoring.trace",
]); // prettier-ignore

export const NAMED: readonly string[] = [...Object.keys(NEEDS), ...PROMINENT];

/** Whether a setting has any effect as things stand. */
export function matters(path: string, get: Get): boolean {
  const section = path.split(".")[0] ?? "";
  const world = WORLDS[section];
  if (world !== undefined && !world(String(get("run.backend")))) return false;
  return NEEDS[path]?.(get) ?? true;
}

/** Whether a whole section has any effect as things stand. */
export function sectionMatters(section: string, tables: Tables): boolean {
  const world = WORLDS[section];
  return world === undefined || world(String(tables["run"]?.["backend"] ?? "simulation"));
}

export function isProminent(path: string): boolean {
  return PROMINENT.has(path);
}
