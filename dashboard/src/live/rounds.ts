// A figure of rounds over nodes: what history told, and what came since.

export interface RoundPoint {
  x: number;
  mean: number;
  low: number;
  high: number;
  nodes: number;
}

export class RoundFigure {
  readonly #points = new Map<number, RoundPoint>();

  /** Take what is known of a whole round. */
  seed(point: RoundPoint): void {
    this.#points.set(point.x, { ...point });
  }

  add(round: number, value: number): void {
    if (!Number.isFinite(value)) return;
    const known = this.#points.get(round);
    if (known === undefined) {
      this.#points.set(round, { x: round, mean: value, low: value, high: value, nodes: 1 });
      return;
    }
    known.nodes += 1;
    known.mean += (value - known.mean) / known.nodes;
    known.low = Math.min(known.low, value);
    known.high = Math.max(known.high, value);
  }

  at(round: number): RoundPoint | null {
    return this.#points.get(round) ?? null;
  }

  points(): RoundPoint[] {
    return [...this.#points.values()].sort((one, other) => one.x - other.x);
  }
}
