// Small pictures of figures: a bar, parts of a whole, and names with values.

import { Fragment, type ReactNode } from "react";

export interface Pair {
  what: string;
  symbol?: string;
  figure: string;
}

/** Names and values; a value that has changed lights up. */
export function Pairs({ pairs }: { pairs: readonly Pair[] }): ReactNode {
  return (
    <dl className="pairs">
      {pairs.map(({ what, symbol, figure }) => (
        <Fragment key={what}>
          <dt>
            {what} {symbol && <Symbol name={symbol} />}
          </dt>
          <dd>
            <b key={figure}>{figure}</b>
          </dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** A symbol of the paper; what follows an underscore is set lower. */
function Symbol({ name }: { name: string }): ReactNode {
  const [letter, index] = name.split("_");
  return (
    <i className="symbol">
      {letter}
      {index && <sub>{index}</sub>}
    </i>
  );
}

export function Bar(props: { label: string; share: number | null; text: string; tone?: string; mark?: number }): ReactNode {
  const { label, share, text, tone = "", mark } = props;
  return (
    <>
      <span className={tone}>{label}</span>
      <span className="track" aria-hidden="true">
        {share !== null && <span style={{ width: `${Math.min(1, Math.max(0, share)) * 100}%` }} />}
        {mark !== undefined && <i style={{ left: `${Math.min(1, mark) * 100}%` }} />}
      </span>
      <span>{text}</span>
    </>
  );
}

export function Split(props: {
  parts: readonly { label: string; value: number | null; colour: string }[];
  write: (value: number) => string;
}): ReactNode {
  const known = props.parts.filter((part) => part.value !== null && part.value > 0);
  return (
    <>
      <div className="split" aria-hidden="true">
        {known.map(({ label, value, colour }) => (
          <span key={label} style={{ flex: `${value ?? 0} 0 0`, background: `var(--${colour})` }} />
        ))}
      </div>
      <ul className="keys" style={{ marginBottom: 8 }}>
        {known.map(({ label, value, colour }) => (
          <li key={label}>
            <i className="swatch" style={{ background: `var(--${colour})` }} />
            {label} {props.write(value ?? 0)}
          </li>
        ))}
      </ul>
    </>
  );
}
