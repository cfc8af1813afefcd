// What one types into or clicks at, by the kind of a setting. A text that cannot be read stays as it was typed: the
// manager then says in words what is wrong with it.

import { useEffect, useState, type ReactNode } from "react";
import type { Field } from "../../scenario/fields";
import { readChurn, readIntegers, readNumber, readTable, same, writeChurn, writeTable } from "../../scenario/values";

interface Props {
  field: Field;
  value: unknown;
  id: string;
  describedBy: string;
  isWrong: boolean;
  onChange: (field: Field, value: unknown) => void;
}

const BUTTONS_UP_TO = 4;

export function Control(props: Props): ReactNode {
  const { field } = props;
  if (field.kind === "switch") return <Switch {...props} />;
  if (field.kind === "choice") return field.choices.length <= BUTTONS_UP_TO ? <Radios {...props} /> : <Select {...props} />;
  return <Typed {...props} />;
}

function Switch({ field, value, id, describedBy, onChange }: Props): ReactNode {
  return (
    <span className="switch">
      <input
        type="checkbox"
        role="switch"
        id={id}
        checked={value === true}
        aria-describedby={describedBy}
        onChange={(event) => onChange(field, event.target.checked)}
      />
      <span aria-hidden="true">{value === true ? "yes" : "no"}</span>
    </span>
  );
}

function Radios({ field, value, id, describedBy, onChange }: Props): ReactNode {
  return (
    <div className="choices" role="radiogroup" aria-labelledby={`${id}-label`} aria-describedby={describedBy}>
      {field.choices.map((choice) => (
        <label key={choice}>
          <input type="radio" name={id} checked={choice === value} onChange={() => onChange(field, choice)} />
          {choice}
        </label>
      ))}
    </div>
  );
}

function Select({ field, value, id, describedBy, isWrong, onChange }: Props): ReactNode {
  return (
    <select
      id={id}
      value={String(value)}
      aria-describedby={describedBy}
      aria-invalid={isWrong}
      onChange={(event) => onChange(field, event.target.value)}
    >
      {field.choices.map((choice) => (
        <option key={choice}>{choice}</option>
      ))}
    </select>
  );
}

function Typed({ field, value, id, describedBy, isWrong, onChange }: Props): ReactNode {
  const [typed, setTyped] = useState(() => write(field, value));
  useEffect(() => {
    // Somebody else changed it: a preset, an import. While it is typed, "0." stays "0.".
    setTyped((before) => (same(read(field, before), value) ? before : write(field, value)));
  }, [field, value]);
  const change = (text: string): void => {
    setTyped(text);
    onChange(field, read(field, text));
  };
  const shared = { id, "aria-describedby": describedBy, "aria-invalid": isWrong, spellCheck: false, value: typed };
  if (field.kind === "table") {
    return <textarea {...shared} rows={2} placeholder="name = value" onChange={(event) => change(event.target.value)} />;
  }
  const isNumber = field.kind === "integer" || field.kind === "number";
  return (
    <input
      {...shared}
      type="text"
      autoComplete="off"
      className={isNumber ? "short" : "long"}
      inputMode={field.kind === "integer" ? "numeric" : field.kind === "number" ? "decimal" : "text"}
      placeholder={field.kind === "churn" ? "node@round, such as 3@4" : field.kind === "integers" ? "such as 0, 2, 4-7" : ""}
      onChange={(event) => change(event.target.value)}
      onKeyDown={(event) => {
        const step = event.key === "ArrowUp" ? 1 : event.key === "ArrowDown" ? -1 : 0;
        if (step === 0 || field.kind !== "integer" || typeof value !== "number") return;
        event.preventDefault();
        change(String(value + step * (event.shiftKey ? 10 : 1)));
      }}
    />
  );
}

function read(field: Field, typed: string): unknown {
  switch (field.kind) {
    case "integer":
    case "number":
      return readNumber(typed, field.kind);
    case "integers":
      return readIntegers(typed);
    case "churn":
      return readChurn(typed);
    case "table":
      return readTable(typed);
    default:
      return typed;
  }
}

function write(field: Field, value: unknown): string {
  if (field.kind === "churn") return writeChurn(value);
  if (field.kind === "table") return writeTable(value);
  if (Array.isArray(value)) return value.join(", ");
  return value === null || value === undefined ? "" : String(value);
}
