// What can be set, as a list of form fields: labels, symbols, units, bounds and sentences all come from the manager's
// description of the scenario, which it reads off the models.

import type { KeyDescription, SectionDescription } from "../client/documents";
import { words } from "../lib/format";

export type FieldKind = "choice" | "switch" | "integer" | "number" | "text" | "integers" | "churn" | "table";

export interface Field {
  /** Its full name, such as `mixnet.path_length`. */
  path: string;
  section: string;
  key: string;
  label: string;
  kind: FieldKind;
  says: string;
  /** Reads after the word "takes". */
  takes: string;
  symbol: string;
  unit: string;
  fallback: unknown;
  choices: readonly string[];
}

export interface FormSection {
  name: string;
  label: string;
  says: string;
  fields: readonly Field[];
}

export function formOf(sections: readonly SectionDescription[]): FormSection[] {
  return sections.map((section) => ({
    name: section.name,
    label: words(section.name),
    says: section.says,
    fields: section.keys.map((key) => fieldOf(section.name, key)),
  }));
}

function fieldOf(section: string, key: KeyDescription): Field {
  const choices = choicesOf(key.json_schema);
  return {
    path: key.key,
    section,
    key: key.name,
    label: words(key.name),
    kind: choices.length > 0 ? "choice" : kindOf(key.json_schema),
    says: key.says,
    takes: key.takes,
    symbol: key.symbol,
    unit: key.unit,
    fallback: key.default,
    choices,
  };
}

function choicesOf(schema: KeyDescription["json_schema"]): string[] {
  if (Array.isArray(schema["enum"])) return schema["enum"].map(String);
  return "const" in schema ? [String(schema["const"])] : [];
}

function kindOf(schema: KeyDescription["json_schema"]): FieldKind {
  switch (schema["type"]) {
    case "boolean":
      return "switch";
    case "integer":
      return "integer";
    case "number":
      return "number";
    case "object":
      return "table";
    case "array": {
      const items = schema["items"] as { type?: string } | undefined;
      return items?.type === "integer" ? "integers" : "churn";
    }
    default:
      return "text";
  }
}
