// The manager's documents by name. Their shapes are generated from its OpenAPI schema.

import type { components } from "./schema";

type Schemas = components["schemas"];

export type Board = Schemas["Board"];
export type Checked = Schemas["Checked"];
export type Comparison = Schemas["Comparison"];
export type EventList = Schemas["EventList"];
export type EventMessage = Schemas["EventMessage"];
export type Expected = Schemas["Expected"];
export type Indicators = Schemas["Indicators"];
export type KeyDescription = Schemas["KeyDescription"];
export type MetricsMessage = Schemas["MetricsMessage"];
export type Mistake = Schemas["Mistake"];
export type NodeDocument = Schemas["NodeState"];
export type NodeList = Schemas["NodeList"];
export type PhaseMessage = Schemas["PhaseMessage"];
export type Preset = Schemas["Preset"];
export type RoundSummary = Schemas["RoundSummary"];
export type RunBrief = Schemas["RunBrief"];
export type RunDetail = Schemas["RunDetail"];
export type RunList = Schemas["RunList"];
export type RunScenario = Schemas["RunScenario"];
export type RunStatus = Schemas["RunStatus"];
export type Scenario = Schemas["Scenario-Output"];
export type ScenarioSchema = Schemas["ScenarioSchema"];
export type SectionDescription = Schemas["SectionDescription"];
export type Series = Schemas["Series"];
export type SeriesList = Schemas["SeriesList"];
export type Topology = Schemas["unlinkabledfl__manager__documents__Topology"];

/** The last message of a stream. OpenAPI does not describe streams; the other three are pages of records as well. */
export interface EndMessage {
  kind: "end";
  status: RunStatus;
  reason: string;
}

/** What a run's stream carries. */
export type Message = MetricsMessage | EventMessage | PhaseMessage | EndMessage;

export function isLive(status: RunStatus): boolean {
  return status === "running" || status === "starting";
}
