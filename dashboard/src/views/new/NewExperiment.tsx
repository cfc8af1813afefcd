// A new experiment: a preset to begin with, a form of everything that can be set, and what the scenario promises.

import { useCallback, useMemo, useState, type ReactNode } from "react";
import { go } from "../../app/router";
import type { Preset, Scenario, ScenarioSchema } from "../../client/documents";
import { get, post, RequestError } from "../../client/request";
import { useAsked } from "../../client/useAsked";
import { formOf, type FormSection } from "../../scenario/fields";
import { sectionMatters } from "../../scenario/relevance";
import { same, valueOf, type Tables } from "../../scenario/values";
import { Icon } from "../../ui/icons";
import { Loading, Notice } from "../../ui/parts";
import { Contents } from "./Contents";
import { Launch } from "./Launch";
import { Presets } from "./Presets";
import { SectionCard } from "./SectionCard";
import { TomlButtons } from "./Toml";
import { useDraft, type Origin } from "./useDraft";

export function NewExperiment({ from }: { from: string | null }): ReactNode {
  const asked = useAsked(`new ${from ?? ""}`, async (signal) => {
    const [schema, presets, base] = await Promise.all([
      get("/api/schema", { signal }),
      get("/api/presets", { signal }),
      from === null ? null : get("/api/runs/{run}/scenario", { path: { run: from }, signal }),
    ]);
    return { schema, presets: presets.presets, base: base?.scenario ?? null };
  });
  if (asked.problem !== null) return <Notice tone="bad" title="The form cannot be made">{asked.problem}</Notice>;
  if (asked.data === null) return <Loading what="Reading what can be set" />;
  const { schema, presets, base } = asked.data;
  const first = base !== null && from !== null ? { name: from, tables: tablesOf(base) } : originOf(presets[0]);
  if (first === null) return <Notice tone="bad">The manager knows no presets.</Notice>;
  return (
    <>
      {from !== null && base === null && (
        <Notice tone="warn">The scenario of {from} is of a version that this one does not understand; the form begins with a preset.</Notice>
      )}
      <Form key={first.name} schema={schema} presets={presets} first={first} />
    </>
  );
}

function Form({ schema, presets, first }: { schema: ScenarioSchema; presets: readonly Preset[]; first: Origin }): ReactNode {
  const draft = useDraft(first);
  const [sought, setSought] = useState("");
  const [launching, setLaunching] = useState<{ isBusy: boolean; problem: string | null }>({ isBusy: false, problem: null });
  const sections = useMemo(() => formOf(schema.sections), [schema]);
  const get = useMemo(() => reader(sections, draft.tables), [sections, draft.tables]);
  const routes = useMemo(() => sections.flatMap(({ fields }) => fields).find(({ path }) => path === "mixnet.route")?.choices ?? [], [sections]);
  const shown = sections.filter((section) => sought !== "" || sectionMatters(section.name, draft.tables));
  const changed = countChanged(sections, draft.tables, draft.origin.tables);

  const find = useCallback((key: string) => {
    setSought("");
    requestAnimationFrame(() => reveal(key));
  }, []);
  const launch = async (): Promise<void> => {
    setLaunching({ isBusy: true, problem: null });
    try {
      const run = await post("/api/runs", { scenario: draft.tables as unknown as Scenario });
      go({ view: "run", run: run.id });
    } catch (error) {
      setLaunching({ isBusy: false, problem: error instanceof RequestError ? error.message : "That did not work." });
    }
  };

  return (
    <>
      <div className="title">
        <h1>New experiment</h1>
        <TomlButtons tables={draft.tables} onImport={(tables) => draft.replace({ name: "the file", tables })} />
        <p>Begin with a preset, change what you want to know about, and see what to expect before anything runs.</p>
      </div>
      <Presets
        presets={presets}
        chosen={draft.origin.name}
        onChoose={(preset) => draft.replace({ name: preset.name, tables: tablesOf(preset.scenario) })}
      />
      <div className="toolbar">
        <div className="search">
          <Icon name="search" />
          <input type="search" placeholder="Find a setting: delay, K, byzantine …" aria-label="Find a setting" value={sought} onChange={(event) => setSought(event.target.value)} />
        </div>
        <p className="soft small" role="status">
          {changed === 0 ? `As in ${draft.origin.name}.` : `${changed} ${changed === 1 ? "setting differs" : "settings differ"} from ${draft.origin.name}.`}
        </p>
        {changed > 0 && <button type="button" className="button plain tight" onClick={() => draft.replace(draft.origin)}>Set all back</button>}
      </div>
      <div className="configure">
        <Contents sections={shown} tables={draft.tables} base={draft.origin.tables} mistakes={draft.mistakes} />
        <form className="stack" onSubmit={(event) => event.preventDefault()} aria-label="Settings">
          {shown.map((section) => (
            <SectionCard
              key={section.name}
              section={section}
              tables={draft.tables}
              base={draft.origin.tables}
              mistakes={draft.mistakes}
              sought={sought}
              get={get}
              onChange={draft.set}
            />
          ))}
        </form>
        <Launch draft={draft} routes={routes} isBusy={launching.isBusy} problem={launching.problem} onLaunch={() => void launch()} onFind={find} />
      </div>
    </>
  );
}

function originOf(preset: Preset | undefined): Origin | null {
  return preset === undefined ? null : { name: preset.name, tables: tablesOf(preset.scenario) };
}

function tablesOf(scenario: Scenario): Tables {
  return scenario as unknown as Tables;
}

function reader(sections: readonly FormSection[], tables: Tables): (path: string) => unknown {
  const fields = new Map(sections.flatMap((section) => section.fields.map((field) => [field.path, field] as const)));
  return (path) => {
    const field = fields.get(path);
    return field === undefined ? undefined : valueOf(tables, field);
  };
}

function countChanged(sections: readonly FormSection[], tables: Tables, base: Tables): number {
  return sections.flatMap((section) => section.fields).filter((field) => !same(valueOf(tables, field), valueOf(base, field))).length;
}

/** Bring a setting, or a section, into sight and put the cursor into it. */
function reveal(key: string): void {
  const found = document.getElementById(`field-${key}`) ?? document.getElementById(`section-${key.split(".")[0]}`);
  found?.closest("details")?.setAttribute("open", "");
  found?.scrollIntoView({ block: "center" });
  found?.querySelector<HTMLElement>("input, select, textarea")?.focus({ preventScroll: true });
}
