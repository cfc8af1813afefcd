import { describe, expect, it } from "vitest";
import { columns, latest, type Curve } from "../src/charts/curves";
import { nodeAt, viewOf } from "../src/graph/draw";
import { layout, type Edge } from "../src/graph/layout";
import { Packets, perDot } from "../src/graph/packets";
import { tone } from "../src/graph/shades";

const GRID: Edge[] = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 3]];

describe("curves", () => {
  const one: Curve = { label: "one", colour: "c1", x: [1, 2], y: [10, 20] };
  const other: Curve = { label: "other", colour: "c2", x: [2, 3], y: [5, null], low: [4, null], high: [6, null] };

  it("come onto one axis with what lies around them", () => {
    const [x, y1, , , y2, low2, high2] = columns([one, other]);
    expect([x, y1, y2, low2, high2].map((column) => Array.from(column ?? []))).toEqual([
      [1, 2, 3],
      [10, 20, undefined],
      [undefined, 5, null],
      [undefined, 4, null],
      [undefined, 6, null],
    ]);
  });

  it("have a last value unless nothing was measured", () => {
    expect(latest(other)).toBe(5);
    expect(latest({ ...one, x: [], y: [] })).toBeNull();
  });
});

describe("the layout", () => {
  it.each(["circulant", "random_regular"])("of %s graphs keeps nodes apart, inside, and is always the same", (family) => {
    const points = layout(6, GRID, family);
    for (const { x, y } of points) expect(Math.hypot(x, y)).toBeLessThanOrEqual(1.5);
    points.forEach((one, place) => {
      for (const other of points.slice(place + 1)) expect(Math.hypot(one.x - other.x, one.y - other.y)).toBeGreaterThan(0.1);
    });
    expect(layout(6, GRID, family)).toEqual(points);
  });

  it("finds the node under the pointer", () => {
    const points = layout(6, GRID, "circulant");
    const view = viewOf(400, 300, 6);
    const at = view.place(points[2] ?? { x: 0, y: 0 });
    expect(nodeAt(at.x + 3, at.y - 3, points, view)).toBe(2);
    expect(nodeAt(200, 150, points, view)).toBeNull();
  });
});

describe("packets on links", () => {
  it("stay few enough to be followed, at any rate", () => {
    for (const rate of [0.5, 26, 27, 300, 14_500, 1e9]) {
      const packets = new Packets(() => 0.5);
      for (let frame = 0; frame < 240; frame += 1) packets.step(1 / 60, [rate, 0], () => 1);
      expect(packets.dots.length).toBeLessThan(40);
      expect(rate / packets.perDot).toBeLessThanOrEqual(26);
      expect(rate / packets.perDot).toBeGreaterThan(rate <= 26 ? 0 : 10);
    }
    expect(perDot(14_500)).toBe(1000);
  });

  it("leave from whoever sends, go where they may, and arrive", () => {
    const packets = new Packets(() => 0.99);
    packets.step(0.1, [0, 20], (from) => (from === 1 ? 0 : null));
    expect(packets.dots).toEqual([{ from: 1, to: 0, at: 0 }, { from: 1, to: 0, at: 0 }]);

    packets.step(5, [0, 0], () => null);
    expect(packets.dots).toEqual([]);
  });
});

describe("tones", () => {
  it("go from the least to the greatest", () => {
    expect([0, 0.3, 0.5, 0.7, 1].map((value) => tone(value, 0, 1))).toEqual(["q0", "q1", "q2", "q3", "q4"]);
    expect(tone(3, 3, 3)).toBe("q2");
  });
});
