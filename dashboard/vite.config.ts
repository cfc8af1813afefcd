/// <reference types="vitest/config" />
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The built page is part of the Python package: the manager serves it from there.
const built = "../src/unlinkabledfl/manager/static";
const manager = process.env["UNLINKABLEDFL_MANAGER"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  base: "./",
  build: { outDir: built, emptyOutDir: true, target: "es2022", assetsInlineLimit: 0, reportCompressedSize: false },
  server: { proxy: { "/api": manager } },
  test: { include: ["tests/**/*.test.ts"], environment: "node" },
});
