import { describe, expect, it } from "vitest";
import type { EventMessage, Message, MetricsMessage, NodeList, SeriesList } from "../src/client/documents";
import { Binned } from "../src/live/binned";
import { reportedAt } from "../src/live/reported";
import { RoundFigure } from "../src/live/rounds";
import { SseParser } from "../src/live/sse";
import { RunStore } from "../src/live/store";

function metrics(position: number, values: Record<string, number>, more: Partial<MetricsMessage> = {}): Message {
  return { kind: "metrics", position, time_s: position, round: null, node: 0, values, ...more };
}

function event(position: number, what: EventMessage["what"], node = 0): EventMessage {
  return { kind: "event", position, time_s: position, node, what, text: what };
}

const NODES: NodeList = { nodes: [], clock_s: 0, position: 0 };
const SERIES: SeriesList = { series: [], metrics: [], position: 0 };

describe("a quantity over time", () => {
  it("keeps every sample in its means and extremes, however many there are", () => {
    const binned = new Binned({ width_s: 1, capacity: 16 });
    const values = Array.from({ length: 5_000 }, (_, place) => (place * 7919) % 1000);
    values.forEach((value, place) => binned.add(place, value));

    const { x, mean, low, high } = binned.columns();

    expect(x.length).toBeLessThanOrEqual(16);
    expect(Math.min(...low.map(Number))).toBe(Math.min(...values));
    expect(Math.max(...high.map(Number))).toBe(Math.max(...values));
    expect(Math.min(...mean.map(Number))).toBeGreaterThan(400);
  });

  it("weighs merged bins by their samples", () => {
    const binned = new Binned({ width_s: 1, capacity: 2 });
    binned.add(0, 1);
    binned.add(0.5, 1);
    binned.add(1, 4);
    binned.add(3, 9);

    expect(binned.columns()).toEqual({ x: [1, 3], mean: [2, 9], low: [1, 9], high: [4, 9] });
  });

  it("leaves out what is no figure", () => {
    const binned = new Binned();
    binned.add(Number.NaN, 1);
    binned.add(1, Number.POSITIVE_INFINITY);
    binned.add(-1, 1);

    expect(binned.columns().x).toEqual([]);
  });
});

describe("a figure of rounds", () => {
  it("goes on from what history told", () => {
    const figure = new RoundFigure();
    figure.seed({ x: 1, mean: 0.5, low: 0.25, high: 0.75, nodes: 3 });
    figure.add(1, 0.9);
    figure.add(2, 0.8);

    expect(figure.points()).toEqual([
      { x: 1, mean: 0.6, low: 0.25, high: 0.9, nodes: 4 },
      { x: 2, mean: 0.8, low: 0.8, high: 0.8, nodes: 1 },
    ]);
  });
});

describe("the store of a run", () => {
  it("makes rates of totals", () => {
    const store = new RunStore(1, "running");
    store.apply([metrics(10, { packets_sent: 100 }), metrics(12, { packets_sent: 160 })]);

    expect(store.nodes[0]?.gauges.get("packets_per_s")).toBe(30);
    expect(store.gauge("packets_per_s")?.columns().mean).toEqual([30]);
  });

  it("counts what the stream repeats of history once", () => {
    const store = new RunStore(1, "running");
    const point = { x: 1, mean: 0.5, low: 0.5, high: 0.5, nodes: 1 };
    store.seed({
      nodes: { ...NODES, position: 5 },
      series: { ...SERIES, series: [{ metric: "accuracy", of: "round", points: [point] }], position: 8 },
      events: [event(7, "link")],
    });
    store.apply([
      metrics(6, { accuracy: 0.5 }, { round: 1 }),
      event(7, "link"),
      metrics(9, { accuracy: 0.7 }, { round: 2 }),
      event(10, "note"),
    ]);

    expect(store.round("accuracy")?.points().map(({ x, nodes }) => [x, nodes])).toEqual([[1, 1], [2, 1]]);
    expect(store.events.map(({ position }) => position)).toEqual([7, 10]);
  });

  it("follows a node that dies and is started again", () => {
    const store = new RunStore(2, "running");
    store.apply([{ kind: "phase", position: 1, time_s: 1, round: 1, node: 1, phase: "train" }]);
    expect(store.nodes[1]).toMatchObject({ presence: "present", phase: "train", round: 1 });

    store.apply([{ ...event(2, "death", 1), text: "out of memory" }]);
    expect(store.nodes[1]).toMatchObject({ presence: "dead", phase: null, lastError: "out of memory" });

    store.apply([metrics(3, { accuracy: 0.4 }, { round: 1, node: 1 }), event(4, "join", 1)]);
    expect(store.nodes[1]?.presence).toBe("present");
  });

  it("wakes whoever shows it once a batch", () => {
    const store = new RunStore(1, "running");
    let woken = 0;
    const forget = store.subscribe(() => (woken += 1));
    store.apply(Array.from({ length: 500 }, (_, place) => metrics(place + 1, { queue_own: place })));
    store.apply([]);
    forget();
    store.apply([{ kind: "end", status: "finished", reason: "" }]);

    expect(woken).toBe(1);
    expect(store.status).toBe("finished");
  });

  it("is bounded, whatever a learner reports", () => {
    const store = new RunStore(1, "running");
    store.apply(Array.from({ length: 1_000 }, (_, place) => metrics(place + 1, { [`odd_${place}`]: 1 }, { round: 1 })));
    store.apply(Array.from({ length: 5_000 }, (_, place) => event(2_000 + place, "link")));

    expect(Array.from({ length: 1_000 }, (_, place) => store.round(`odd_${place}`)).filter(Boolean)).toHaveLength(120);
    expect(store.events).toHaveLength(2_000);
    expect(store.events.at(-1)?.position).toBe(6_999);
  });
});

describe("when rounds were reported", () => {
  const rounds = { metric: "round_s", of: "round" as const, points: [1, 2].map((x) => ({ x, mean: 10, low: 9, high: 11, nodes: 4 })) };
  const moments = [[1, 1], [11, 1.2], [13, 1.6], [24, 2]] as const;
  const gauge = { metric: "round", of: "moment" as const, points: moments.map(([x, mean]) => ({ x, mean, low: 1, high: 2, nodes: 4 })) };

  it("is when half of the nodes went on, as the gauge shows it", () => {
    expect(reportedAt([rounds, gauge], 25).map(({ mean }) => mean)).toEqual([13, 23]);
  });

  it("is laid end to end where nobody sampled", () => {
    expect(reportedAt([rounds], 15).map(({ mean }) => mean)).toEqual([10, 15]);
  });
});

describe("server-sent events", () => {
  const text = 'retry: 1000\n\n: still there\n\nid: 7\nevent: metrics\ndata: {"a":1}\n\nid: 8\r\ndata: two\r\ndata: lines\r\n\r\nevent: end\ndata: ü\n\n';
  const wanted = [
    { id: "7", event: "metrics", data: '{"a":1}' },
    { id: "8", event: "message", data: "two\nlines" },
    { id: "8", event: "end", data: "ü" },
  ];

  it("are the same wherever the text is cut", () => {
    for (let cut = 0; cut <= text.length; cut += 1) {
      const parser = new SseParser();
      expect([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))]).toEqual(wanted);
    }
    const parser = new SseParser();
    expect([...text].flatMap((letter) => parser.push(letter))).toEqual(wanted);
  });
});
