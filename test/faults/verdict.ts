/** Says what a fault test has found: the figures always, and where the evidence is kept when it failed. */
import { join } from "node:path";
import { expect } from "vitest";
import type { Findings } from "../history/experiment.js";
import { root } from "../setup/root.js";
import { seed } from "./scale.js";

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
