// Many messages a second, one update a frame. A hidden page gets no frames; then a timer stands in.
//
// Invariant: what was pushed is delivered once and in order. A replayed history is spread over frames, so that none is long.

const HIDDEN_MS = 1_000;
const SLICE = 1_000;

export class FrameBatch<T> {
  readonly #deliver: (batch: readonly T[]) => void;
  #waiting: T[] = [];
  #cancel: (() => void) | null = null;

  constructor(deliver: (batch: readonly T[]) => void) {
    this.#deliver = deliver;
  }

  push(item: T): void {
    this.#waiting.push(item);
    this.#cancel ??= schedule(() => this.flush());
  }

  flush(): void {
    this.stop();
    const batch = this.#waiting.slice(0, SLICE);
    this.#waiting = this.#waiting.slice(SLICE);
    if (this.#waiting.length > 0) this.#cancel = schedule(() => this.flush());
    if (batch.length > 0) this.#deliver(batch);
  }

  /** Forget the wake-up; what waits stays for the next flush. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }
}

function schedule(run: () => void): () => void {
  if (document.hidden) {
    const timer = window.setTimeout(run, HIDDEN_MS);
    return () => window.clearTimeout(timer);
  }
  const frame = window.requestAnimationFrame(run);
  // A page that is hidden before its frame comes would wait until it is shown again.
  const timer = window.setTimeout(run, 2 * HIDDEN_MS);
  return () => {
    window.cancelAnimationFrame(frame);
    window.clearTimeout(timer);
  };
}
