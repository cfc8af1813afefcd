import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { KeyDescription } from "../src/client/documents";
import { formOf, type Field } from "../src/scenario/fields";
import { matters, NAMED } from "../src/scenario/relevance";
import { differing, readChurn, readIntegers, readNumber, readTable, withValue, writeChurn, writeTable } from "../src/scenario/values";

type Schema = { properties?: Record<string, { $ref?: string }> };
const openapi = JSON.parse(readFileSync(new URL("../openapi.json", import.meta.url), "utf8")) as {
  components: { schemas: Record<string, Schema> };
};

function keysOfScenario(): string[] {
  const schemas = openapi.components.schemas;
  return Object.entries(schemas["Scenario-Output"]?.properties ?? {}).flatMap(([section, { $ref }]) => {
    const name = $ref?.split("/").at(-1) ?? "";
    return Object.keys(schemas[name]?.properties ?? {}).map((key) => `${section}.${key}`);
  });
}

function key(name: string, schema: KeyDescription["json_schema"], more: Partial<KeyDescription> = {}): KeyDescription {
  return { key: `mixnet.${name}`, name, says: "", takes: "", default: null, unit: "", symbol: "", json_schema: schema, ...more };
}

describe("the form", () => {
  it("names only settings that there are", () => {
    const known = new Set(keysOfScenario());
    expect(known.size).toBeGreaterThan(50);
    expect(NAMED.filter((path) => !known.has(path))).toEqual([]);
  });

  it("takes its fields from the manager's description", () => {
    const [section] = formOf([
      {
        name: "mixnet",
        says: "How packets travel.",
        keys: [
          key("route", { type: "string", enum: ["walk", "overlay"] }),
          key("path_length", { type: "integer" }, { symbol: "K", default: 3 }),
          key("delay_mean_s", { type: "number" }, { unit: "s" }),
          key("cover", { type: "boolean" }),
          key("cores", { type: "array", items: { type: "integer" } }),
          key("join", { type: "array", items: { $ref: "#/$defs/Churn" } }),
          key("options", { type: "object" }),
          key("name", { type: "string" }),
        ],
      },
    ]);

    expect(section?.fields.map(({ kind }) => kind)).toEqual([
      "choice", "integer", "number", "switch", "integers", "churn", "table", "text",
    ]); // prettier-ignore
    expect(section?.fields[1]).toMatchObject({ path: "mixnet.path_length", label: "Path length", symbol: "K", fallback: 3 });
    expect(section?.fields[2]).toMatchObject({ label: "Delay mean", unit: "s" });
  });

  it("hides what has no effect", () => {
    const outbox = (path: string): unknown => ({ "mixnet.mixer": "outbox", "run.backend": "process" })[path];
    expect(matters("mixnet.outbox_size", outbox)).toBe(true);
    expect(matters("mixnet.emission_rate_per_s", outbox)).toBe(false);
    expect(matters("links.latency_s", outbox)).toBe(false);
    expect(matters("process.pin", outbox)).toBe(true);
    expect(matters("process.pin", () => "container")).toBe(true);
    expect(matters("process.pin", () => "simulation")).toBe(false);
  });

  it("knows what was changed", () => {
    const field = { path: "a.b", section: "a", key: "b", fallback: 1 } as Field;
    expect(differing({}, { a: { b: 1 } }, [field])).toEqual([]);
    expect(differing(withValue({}, field, 2), {}, [field])).toEqual([field]);
  });
});

describe("what is typed", () => {
  it.each([
    ["3", 3], ["1e-3", 0.001], [" 1,000 ", 1000], [".5", 0.5], ["−2", -2], ["", ""], ["3 s", "3 s"], ["0x10", "0x10"], ["1e999", "1e999"],
  ])("reads %j as a number, or leaves it as it is", (typed, read) => {
    expect(readNumber(typed, "number")).toBe(read);
  });

  it("does not round a whole number that is too large for it", () => {
    expect(readNumber("9007199254740993", "integer")).toBe("9007199254740993");
  });

  it.each([["0, 2 4-6", [0, 2, 4, 5, 6]], ["", []], ["6-4", "6-4"], ["a", "a"]])("reads %j as cores", (typed, read) => {
    expect(readIntegers(typed)).toEqual(read);
  });

  it("reads churn as it writes it", () => {
    const churn = [{ node: 3, round: 4 }, { node: 5, round: 1 }];
    expect(readChurn(writeChurn(churn))).toEqual(churn);
    expect(readChurn("3@")).toBe("3@");
  });

  it("reads options as it writes them", () => {
    const options = { depth: 3, deep: true, name: "a b" };
    expect(readTable(writeTable(options))).toEqual(options);
    expect(readTable("no equals sign")).toBe("no equals sign");
  });
});
