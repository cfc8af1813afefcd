import { describe, expect, it } from "vitest";
import { link, parse, type Place } from "../src/app/router";
import { bytes, count, duration, mebibytes, moment, number, percent, words } from "../src/lib/format";

describe("figures", () => {
  it.each([
    [number(1234.6), "1,235"], [number(12.345), "12.35"], [number(0.00001), "1.00e-5"], [number(null), "–"], [number(0), "0"],
    [percent(0.7321), "73.2 %"], [percent(1, 0), "100 %"], [percent(undefined), "–"],
    [duration(0.0234), "23.4 ms"], [duration(0.00012), "120 µs"], [duration(9.96), "10 s"], [duration(61), "1 min 1 s"],
    [duration(7322), "2 h 2 min"], [duration(90_000), "1 d 1 h"], [duration(0), "0 s"], [duration(Number.NaN), "–"],
    [bytes(8_082_410), "8.08 MB"], [bytes(512), "512 B"], [mebibytes(2048), "2 GiB"], [mebibytes(914.76), "915 MiB"],
    [count(1, "node"), "1 node"], [count(3, "node"), "3 nodes"],
    [words("delay_mean_s"), "Delay mean"], [words("body_bytes"), "Body bytes"],
  ])("are written for people: %s", (written, wanted) => {
    expect(written).toBe(wanted);
  });

  it("say when something was", () => {
    const now = new Date(2026, 0, 2, 12);
    expect(moment(new Date(2026, 0, 2, 9, 5).toISOString(), now)).toBe("today, 09:05");
    expect(moment(new Date(2025, 11, 31, 9, 5).toISOString(), now)).toBe("31 Dec 2025, 09:05");
    expect(moment("nonsense")).toBe("–");
  });
});

describe("places", () => {
  it.each<Place>([
    { view: "new", from: null },
    { view: "new", from: "demo-1" },
    { view: "runs" },
    { view: "run", run: "demo 1/2" },
    { view: "node", run: "demo", node: 17 },
    { view: "compare", runs: ["a", "b&c"] },
  ])("have an address that leads back to them: %j", (place) => {
    expect(parse(link(place))).toEqual(place);
  });

  it("that do not exist are said to", () => {
    for (const hash of ["#/nowhere", "#/runs/a/nodes/x", "#/runs/a/b", "#/%E0%A4%A"]) expect(parse(hash).view).toBe("lost");
    expect(parse("").view).toBe("runs");
  });
});
