// Small parts that every view uses.

import { useId, type ReactNode } from "react";
import { Icon, type IconName } from "./icons";

type Tone = "info" | "good" | "warn" | "bad";

export function Notice({ tone = "info", title, children }: { tone?: Tone; title?: string; children?: ReactNode }): ReactNode {
  return (
    <div className={`notice ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      <Icon name={tone} />
      <div>
        {title !== undefined && <strong>{title}</strong>}
        {title !== undefined && children !== undefined && <br />}
        {children}
      </div>
    </div>
  );
}

export function Badge({ status }: { status: string }): ReactNode {
  return <span className={`badge ${status}`}>{status}</span>;
}

export function Empty({ title, children, actions }: { title: string; children: ReactNode; actions?: ReactNode }): ReactNode {
  return (
    <div className="empty">
      <svg viewBox="0 0 72 72" fill="none" stroke="currentColor" strokeWidth="1.5" aria-hidden="true">
        <path d="M18 22 36 12l18 10v24L36 58 18 46V22Zm0 0 36 24M54 22 18 46M36 12v46" strokeOpacity=".45" />
        {[[18, 22], [36, 12], [54, 22], [54, 46], [36, 58], [18, 46]].map(([x, y]) => (
          <circle key={`${x},${y}`} cx={x} cy={y} r="4" fill="var(--bg)" />
        ))}
      </svg>
      <h2>{title}</h2>
      <p>{children}</p>
      {actions !== undefined && <div className="actions">{actions}</div>}
    </div>
  );
}

export function Loading({ what }: { what: string }): ReactNode {
  return (
    <p className="loading" role="status">
      {what} …
    </p>
  );
}

export interface Option<T extends string> {
  value: T;
  label: string;
}

/** A few exclusive choices beside each other, which the arrow keys move through. */
export function Choices<T extends string>(props: {
  label: string;
  value: T;
  options: readonly Option<T>[];
  onChange: (value: T) => void;
}): ReactNode {
  const group = useId();
  return (
    <div className="choices" role="radiogroup" aria-label={props.label}>
      {props.options.map((option) => (
        <label key={option.value}>
          <input
            type="radio"
            name={group}
            checked={option.value === props.value}
            onChange={() => props.onChange(option.value)}
          />
          {option.label}
        </label>
      ))}
    </div>
  );
}

export function Meter({ share, label }: { share: number; label: string }): ReactNode {
  const whole = Math.round(share * 100);
  return (
    <div className="meter" role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={whole}>
      <span style={{ width: `${share * 100}%` }} />
    </div>
  );
}

export function IconButton(props: { icon: IconName; label: string; onClick: () => void; disabled?: boolean }): ReactNode {
  return (
    <button
      type="button"
      className="button icon"
      aria-label={props.label}
      title={props.label}
      disabled={props.disabled ?? false}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  );
}
