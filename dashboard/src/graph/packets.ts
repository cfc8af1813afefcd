// Packets as dots, at a rate that a person can follow.
//
// How much each node sends is measured. Over which link a packet goes is not: nobody is to know, so it is drawn at random,
// from the links that its routes may use. When there are too many packets, one dot stands for several.

export interface Dot {
  from: number;
  to: number;
  /** From 0 at the sender to 1 at the receiver. */
  at: number;
}

const DOTS_PER_S = 26;
const FLIGHT_S = 1.1;
const ROUND_NUMBERS = [1, 2, 5];

export class Packets {
  readonly dots: Dot[] = [];
  perDot = 1;
  #owed = 0;
  readonly #random: () => number;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** Let time pass. `rates`: packets a second of each node; `target`: where a packet of a node may go. */
  step(elapsed_s: number, rates: readonly number[], target: (node: number, random: number) => number | null): void {
    for (const dot of this.dots) dot.at += elapsed_s / FLIGHT_S;
    while (this.dots[0] !== undefined && this.dots[0].at >= 1) this.dots.shift();
    const total = rates.reduce((sum, rate) => sum + rate, 0);
    if (!(total > 0) || !Number.isFinite(total)) return;
    this.perDot = perDot(total);
    this.#owed = Math.min(this.#owed + (elapsed_s * total) / this.perDot, DOTS_PER_S);
    while (this.#owed >= 1) {
      this.#owed -= 1;
      const from = this.#sender(rates, total);
      const to = target(from, this.#random());
      if (to !== null && to !== from) this.dots.push({ from, to, at: 0 });
    }
  }

  #sender(rates: readonly number[], total: number): number {
    let left = this.#random() * total;
    for (let node = 0; node < rates.length; node += 1) {
      left -= rates[node] ?? 0;
      if (left < 0) return node;
    }
    return rates.length - 1;
  }
}

/** The least of 1, 2, 5, 10, 20 … packets a dot with which dots stay few enough. */
export function perDot(packetsPerS: number): number {
  for (let ten = 1; ; ten *= 10) {
    for (const digit of ROUND_NUMBERS) if (packetsPerS / (digit * ten) <= DOTS_PER_S) return digit * ten;
  }
}
