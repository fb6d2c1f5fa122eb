/**
 * Prints the findings of a fault test: the figures always, and the path of the evidence after a
 * failure.
 */
import { join, dirname } from "node:path";
import { expect } from "vitest";
import type { Findings } from "../support/sequences/experiment.js";
import { root } from "../support/fleet/root.js";
import { seed } from "./scale.js";
import { mkdirSync, writeFileSync } from "node:fs";
import type { StreamFindings } from "../support/streams/lab.js";

export function expectNoViolation(name: string, { violations, shortfalls, numbers, history }: Findings<unknown>): void {
  const { requests, attempts, unknown, load, bystander, workerEvents } = numbers;
  const found = violations.map(({ invariant, sequence, request, what }) =>
    [invariant, sequence, request, what].filter((part) => part !== undefined).join(" "),
  );
  console.log(
    `${name}, seed ${seed}: ${JSON.stringify({ requests, attempts, unknown, load, bystander, workerEvents })}`,
  );
  if (found.length + shortfalls.length > 0) {
    const file = join(root, ".baton", "failed", `${name}-${seed}.jsonl`);
    history.save(file);
    console.log(`history kept in ${file}`);
  }
  expect({ violations: found.slice(0, 20), shortfalls }).toEqual({ violations: [], shortfalls: [] });
}

/** Prints the findings of a test of streams, and keeps the suspicious histories. */
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
