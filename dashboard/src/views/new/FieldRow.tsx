// One setting: its name, the paper's symbol, a control for its kind, a sentence, and what is wrong with it.

import { memo, useId, type ReactNode } from "react";
import type { Mistake } from "../../client/documents";
import type { Field } from "../../scenario/fields";
import { IconButton } from "../../ui/parts";
import { Control } from "./Control";

interface Props {
  field: Field;
  value: unknown;
  /** What it has in the preset; the field can go back to it. */
  base: unknown;
  isChanged: boolean;
  mistake: Mistake | undefined;
  onChange: (field: Field, value: unknown) => void;
}

export const FieldRow = memo(function FieldRow({ field, value, base, isChanged, mistake, onChange }: Props): ReactNode {
  const id = useId();
  const describedBy = `${id}-says${mistake ? ` ${id}-wrong` : ""}`;
  const isGroup = field.kind === "choice" && field.choices.length <= 4;
  return (
    <div className={`field${isChanged ? " changed" : ""}${mistake ? " wrong" : ""}`} id={`field-${field.path}`}>
      <div className="name">
        {isGroup ? <span id={`${id}-label`}>{field.label}</span> : <label htmlFor={id} id={`${id}-label`}>{field.label}</label>}
        {field.symbol && <i className="symbol" title="The symbol in the paper">{field.symbol}</i>}
        {isChanged && (
          <IconButton icon="undo" label={`Set ${field.label} back to ${show(base)}`} onClick={() => onChange(field, base)} />
        )}
      </div>
      <div className="control">
        <Control field={field} value={value} id={id} describedBy={describedBy} isWrong={mistake !== undefined} onChange={onChange} />
        {field.unit && <span className="unit">{field.unit}</span>}
      </div>
      <p className="says" id={`${id}-says`}>{marked(field.says)}</p>
      {mistake && (
        <p className="mistake" id={`${id}-wrong`}>
          {mistake.got === "" ? "Missing" : <>“{mistake.got}” does not fit</>}: it takes {mistake.takes}
          {mistake.hint ? `; ${mistake.hint}` : ""}.
        </p>
      )}
    </div>
  );
});

function show(value: unknown): string {
  if (Array.isArray(value) && value.length === 0) return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Text in which `this` is set as code. */
export function marked(text: string): ReactNode[] {
  return text.split("`").map((part, place) => (place % 2 ? <code key={place}>{part}</code> : part));
}
