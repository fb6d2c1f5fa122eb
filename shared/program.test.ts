import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

let folder: string;
const told: unknown[] = [];
beforeEach(() => {
  vi.resetModules();
  folder = mkdtempSync(join(tmpdir(), "baton-program-"));
  vi.stubGlobal("tell", (what: unknown) => told.push(what));
  writeFileSync(join(folder, "main.cjs"), `tell(require("./part.cjs").basename(__filename));`);
  writeFileSync(join(folder, "part.cjs"), `exports.basename = require("node:path").basename;`);
});
afterEach(() => {
  vi.unstubAllGlobals();
  rmSync(folder, { recursive: true, force: true });
  told.length = 0;
});

it("runs a program whose files require each other, each once", async () => {
  const { runProgram } = await import("./program.js");
  runProgram(join(folder, "main.cjs"));
  runProgram(join(folder, "main.cjs"));
  expect(told).toEqual(["main.cjs"]);
});

it("runs it again from what was kept", async () => {
  (await import("./program.js")).keepCompiled([join(folder, "main.cjs")]);
  vi.resetModules();
  (await import("./program.js")).runProgram(join(folder, "main.cjs"));
  expect(told).toEqual(["main.cjs", "main.cjs"]);
});

it("compiles what V8 does not take", async () => {
  for (const file of ["main.cjs", "part.cjs"]) writeFileSync(join(folder, `${file}.compiled`), "of another version");
  (await import("./program.js")).runProgram(join(folder, "main.cjs"));
  expect(told).toEqual(["main.cjs"]);
});
