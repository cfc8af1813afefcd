// The few signs that the dashboard uses, drawn with strokes so that they take the colour of the text.

import type { ReactNode } from "react";

const PATHS = {
  info: "M8 7.2v4M8 4.8v.1M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4Z",
  warn: "M8 6.2v3.2M8 11.6v.1M8 2 1.6 13.4h12.8L8 2Z",
  bad: "m5.8 5.8 4.4 4.4m0-4.4-4.4 4.4M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4Z",
  good: "m5 8.2 2.1 2.1L11 6.2M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4Z",
  play: "M4.5 2.8v10.4l8.4-5.2-8.4-5.2Z",
  stop: "M3.8 3.8h8.4v8.4H3.8z",
  download: "M8 2v8m0 0L4.8 6.8M8 10l3.2-3.2M2.5 13.5h11",
  upload: "M8 10.5v-8m0 0L4.8 5.7M8 2.5l3.2 3.2M2.5 13.5h11",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  trash: "M2.5 4.2h11M6 4V2.4h4V4m-6.2.2.7 9.4h7l.7-9.4M6.6 7v4M9.4 7v4",
  undo: "M5.5 3 2.5 6l3 3M2.7 6h6.6a3.9 3.9 0 0 1 0 7.8H6",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1.2v1.6m0 10.4v1.6M1.2 8h1.6m10.4 0h1.6M3.2 3.2l1.1 1.1m7.4 7.4 1.1 1.1m0-9.6-1.1 1.1m-7.4 7.4-1.1 1.1",
  moon: "M13.6 9.6A6 6 0 0 1 6.4 2.4a6 6 0 1 0 7.2 7.2Z",
  back: "M9.8 3.2 5 8l4.8 4.8",
  search: "m13.5 13.5-3.2-3.2M7 11.8a4.8 4.8 0 1 0 0-9.6 4.8 4.8 0 0 0 0 9.6Z",
  out: "M9.5 2.5h4v4M13.2 2.8 7.5 8.5M11.5 9v4.5h-9v-9H7",
  exit: "M6.5 2.5h-4v11h4M10 4.8 13.2 8 10 11.2M13 8H6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): ReactNode {
  return (
    <svg viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The mark of the product: three nodes, each of which relays for the others. */
export function Mark(): ReactNode {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="var(--accent)" />
      <path d="M9 9.5 23 16 9 22.5M9 9.5v13" fill="none" stroke="var(--accent-ink)" strokeWidth="2" strokeOpacity=".6" />
      {[[9, 9.5], [9, 22.5], [23, 16]].map(([x, y]) => (
        <circle key={y} cx={x} cy={y} r="3.5" fill="var(--accent-ink)" />
      ))}
    </svg>
  );
}
