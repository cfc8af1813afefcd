// Numbers for people: about four digits, and the unit that fits the size. What is not known is a dash.

export const UNKNOWN = "–";

/** Write a number with about four digits, without an exponent where people would not use one. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return UNKNOWN;
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(2);
  if (size >= 1000 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  const digits = size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
  return trim(value.toFixed(digits));
}

/** Write a share as a percentage. */
export function percent(value: number | null | undefined, digits = 1): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return `${(value * 100).toFixed(digits)} %`;
}

/** Write a duration in the two largest units that it has. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return UNKNOWN;
  if (seconds < 0.001 && seconds > 0) return `${number(seconds * 1e6)} µs`;
  if (seconds < 1 && seconds > 0) return `${trim((seconds * 1000).toPrecision(3))} ms`;
  if (seconds < 60) return `${trim(seconds.toFixed(seconds < 10 ? 1 : 0))} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

/** Write an amount of data in decimal units, as links are counted. */
export function bytes(value: number | null | undefined): string {
  return scaled(value, 1000, ["B", "kB", "MB", "GB", "TB", "PB"]);
}

/** Write mebibytes, as memory is counted. */
export function mebibytes(value: number | null | undefined): string {
  return scaled(value, 1024, ["MiB", "GiB", "TiB"]);
}

/** Write when something was, for whoever looks at it today. */
export function moment(iso: string | null | undefined, now: Date = new Date()): string {
  if (!iso) return UNKNOWN;
  const then = new Date(iso);
  if (Number.isNaN(then.getTime())) return UNKNOWN;
  const time = then.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (then.toDateString() === now.toDateString()) return `today, ${time}`;
  return `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" })}, ${time}`;
}

/** Put the noun in the plural where there is not exactly one. */
export function count(many: number, noun: string, plural = `${noun}s`): string {
  return `${number(many)} ${many === 1 ? noun : plural}`;
}

/** Turn a key such as `delay_mean_s` into words; its unit is said elsewhere. */
export function words(key: string): string {
  const plain = key.replace(/_(s|bytes|per_s)$/, (unit) => (unit === "_bytes" ? "_bytes" : "")).replaceAll("_", " ");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

function scaled(value: number | null | undefined, step: number, units: readonly string[]): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  let place = 0;
  let left = value;
  while (Math.abs(left) >= step && place < units.length - 1) {
    left /= step;
    place += 1;
  }
  const digits = Math.abs(left) >= 100 || Number.isInteger(left) ? 0 : Math.abs(left) >= 10 ? 1 : 2;
  return `${trim(left.toFixed(digits))} ${units[place]}`;
}

function trim(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
