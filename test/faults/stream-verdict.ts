/** Says what a stream's fault test has found: the figures always, and the suspicious histories when it failed. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { root } from "../setup/root.js";
import type { StreamFindings } from "../streams/lab.js";
import { seed } from "./scale.js";

export function expectUndisturbed(name: string, { violations, suspicious, figures }: StreamFindings<unknown>): void {
  const found = violations.map(({ invariant, stream, what }) => `${invariant} ${stream}: ${what}`);
  console.log(`${name}, seed ${seed}: ${JSON.stringify(figures)}`);
  if (found.length > 0) {
    const file = join(root, ".baton", "failed", `${name}-${seed}.json`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify({ found, suspicious }, null, 1));
    console.log(`${found.length} violations; histories kept in ${file}`);
  }
  expect(found.slice(0, 20)).toEqual([]);
}
