// A quantity over time in a bounded number of bins: when they are full, neighbours merge and each bin lasts twice as long.
//
// Invariant: every sample is in exactly one bin, so means stay means and extremes stay extremes, however long a run is.

export interface Columns {
  x: number[];
  mean: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
}

export class Binned {
  readonly capacity: number;
  #width: number;
  #sum: number[] = [];
  #count: number[] = [];
  #low: number[] = [];
  #high: number[] = [];

  constructor({ width_s = 1, capacity = 600 }: { width_s?: number; capacity?: number } = {}) {
    this.#width = width_s;
    this.capacity = capacity;
  }

  get width_s(): number {
    return this.#width;
  }

  add(time_s: number, value: number): void {
    this.addRange(time_s, { mean: value, low: value, high: value });
  }

  /** Take several samples of about the same moment. */
  addRange(time_s: number, { mean, low, high }: { mean: number; low: number; high: number }): void {
    if (!Number.isFinite(mean) || !Number.isFinite(time_s) || time_s < 0) return;
    while (Math.floor(time_s / this.#width) >= this.capacity) this.#merge();
    const bin = Math.floor(time_s / this.#width);
    while (this.#count.length <= bin) {
      this.#sum.push(0);
      this.#count.push(0);
      this.#low.push(Infinity);
      this.#high.push(-Infinity);
    }
    this.#sum[bin] = (this.#sum[bin] ?? 0) + mean;
    this.#count[bin] = (this.#count[bin] ?? 0) + 1;
    this.#low[bin] = Math.min(this.#low[bin] ?? Infinity, low);
    this.#high[bin] = Math.max(this.#high[bin] ?? -Infinity, high);
  }

  columns(): Columns {
    const found: Columns = { x: [], mean: [], low: [], high: [] };
    for (let bin = 0; bin < this.#count.length; bin += 1) {
      const many = this.#count[bin] ?? 0;
      if (many === 0) continue;
      found.x.push((bin + 0.5) * this.#width);
      found.mean.push((this.#sum[bin] ?? 0) / many);
      found.low.push(this.#low[bin] ?? null);
      found.high.push(this.#high[bin] ?? null);
    }
    return found;
  }

  #merge(): void {
    const half = Math.ceil(this.#count.length / 2);
    const pairs = <T>(values: T[], join: (one: T, other: T) => T, none: T): T[] =>
      Array.from({ length: half }, (_, bin) => join(values[2 * bin] ?? none, values[2 * bin + 1] ?? none));
    const add = (one: number, other: number): number => one + other;
    this.#sum = pairs(this.#sum, add, 0);
    this.#count = pairs(this.#count, add, 0);
    this.#low = pairs(this.#low, Math.min, Infinity);
    this.#high = pairs(this.#high, Math.max, -Infinity);
    this.#width *= 2;
  }
}
