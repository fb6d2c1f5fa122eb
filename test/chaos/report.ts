/** What is told of a chaos run, and how it reads. */
import type { History } from "../history/history.js";
import type { Violation } from "../history/invariants.js";
import type { Latency } from "../history/latency.js";
import type { Numbers } from "../history/numbers.js";
import type { FaultCounts } from "./inject.js";
import type { Fault } from "./plan.js";

export interface ChaosReport {
  readonly seed: number;
  readonly faults: FaultCounts;
  readonly violations: readonly Violation[];
  /** Why the run proves less than it should; empty when it proves it. */
  readonly shortfalls: readonly string[];
  readonly numbers: Numbers;
  readonly plan: readonly Fault[];
  readonly history: History;
}

export function renderReport({ seed, faults, violations, shortfalls, numbers }: ChaosReport): string {
  const list = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ");
  const latency = (name: string, { count, p50Ms, p99Ms, maxMs }: Latency) =>
    `  ${name}: ${count} requests, wait p50 ${p50Ms} ms, p99 ${p99Ms} ms, max ${maxMs} ms`;
  const mebibytes = Object.entries(numbers.peak).map(([name, value]) =>
    name.endsWith("Bytes") ? `${name.replace("Bytes", "")} ${Math.round(value / 1_048_576)} MiB` : `${name} ${value}`,
  );
  const shown = violations.slice(0, 40).map(({ invariant, sequence, request, what }) => {
    const who = [sequence, request].filter((one) => one !== undefined).join(" ");
    return `  ${invariant} ${who}${who === "" ? "" : ": "}${what}`;
  });
  return [
    `seed ${seed}, ${numbers.seconds} s`,
    `  faults: ${list(faults)}`,
    `  attempts: ${numbers.attempts}, of which unknown: ${list(numbers.unknown) || "none"}`,
    latency("load", numbers.load),
    latency("bystander", numbers.bystander),
    `  workers: ${numbers.workerLives} lives; logged: ${list(numbers.workerEvents) || "nothing"}`,
    `  peaks: ${mebibytes.join(", ")}`,
    ...shortfalls.map((what) => `  NOT REACHED ${what}`),
    violations.length === 0 ? "  0 violations" : `  ${violations.length} VIOLATIONS`,
    ...shown,
    ...(violations.length > shown.length ? [`  … and ${violations.length - shown.length} more`] : []),
  ].join("\n");
}
