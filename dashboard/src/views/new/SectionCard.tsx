// A section of the form. What most people set is in sight; the rest is one click away, and so is what has no effect now.

import type { ReactNode } from "react";
import type { Mistake } from "../../client/documents";
import type { Field, FormSection } from "../../scenario/fields";
import { isProminent, matters } from "../../scenario/relevance";
import { same, valueOf, type Tables } from "../../scenario/values";
import { FieldRow, marked } from "./FieldRow";

interface Props {
  section: FormSection;
  tables: Tables;
  base: Tables;
  mistakes: ReadonlyMap<string, Mistake>;
  /** Words that are searched for; empty: everything is shown as usual. */
  sought: string;
  get: (path: string) => unknown;
  onChange: (field: Field, value: unknown) => void;
}

export function SectionCard({ section, tables, base, mistakes, sought, get, onChange }: Props): ReactNode {
  const found = section.fields.filter((field) => isFound(field, sought));
  const isChanged = (field: Field): boolean => !same(valueOf(tables, field), valueOf(base, field));
  const isFront = (field: Field): boolean =>
    sought !== "" || isChanged(field) || mistakes.has(field.path) || (isProminent(field.path) && matters(field.path, get));
  const front = found.filter(isFront);
  const rest = found.filter((field) => !isFront(field) && matters(field.path, get));
  if (front.length + rest.length === 0) return null;
  const row = (field: Field): ReactNode => (
    <FieldRow
      key={field.path}
      field={field}
      value={valueOf(tables, field)}
      base={valueOf(base, field)}
      isChanged={isChanged(field)}
      mistake={mistakes.get(field.path)}
      onChange={onChange}
    />
  );
  const whole = mistakes.get(section.name);
  return (
    <section className="card section" id={`section-${section.name}`} aria-labelledby={`title-${section.name}`}>
      <header>
        <h2 id={`title-${section.name}`}>{section.label}</h2>
        <p className="soft small">{marked(section.says)}</p>
      </header>
      {whole && <p className="mistake">{whole.text}</p>}
      <div className="fields">{front.map(row)}</div>
      {rest.length > 0 && (
        <details className="more">
          <summary>{rest.length} more</summary>
          <div className="fields">{rest.map(row)}</div>
        </details>
      )}
    </section>
  );
}

function isFound(field: Field, sought: string): boolean {
  if (sought === "") return true;
  const text = `${field.path} ${field.label} ${field.symbol} ${field.says}`.toLowerCase();
  return sought.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
