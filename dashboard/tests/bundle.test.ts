import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const BUILT = fileURLToPath(new URL("../../src/unlinkabledfl/manager/static", import.meta.url));
const LIMIT_BYTES = 400_000;

describe("the built page", () => {
  const files = readdirSync(BUILT, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const contents = files.map((file) => ({ name: file.name, content: readFileSync(join(file.parentPath, file.name)) }));

  it("has less than 400 kB, compressed, fonts included", () => {
    const total = contents.reduce((sum, { content }) => sum + gzipSync(content, { level: 9 }).length, 0);
    expect(total).toBeGreaterThan(50_000);
    expect(total).toBeLessThan(LIMIT_BYTES);
  });

  it("loads nothing from elsewhere", () => {
    const page = contents.find(({ name }) => name === "index.html")?.content.toString() ?? "";
    expect(page.match(/(src|href)="(?!\.\/)[^"]*"/g)).toBeNull();
    const styles = contents.filter(({ name }) => name.endsWith(".css")).map(({ content }) => content.toString());
    expect(styles.join("").match(/url\((?!\.\/|data:)[^)]*\)/g)).toBeNull();
  });
});
