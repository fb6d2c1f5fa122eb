/** The report of a chaos run, as data and as text. */
import type { History } from "../support/sequences/history.js";
import type { Violation } from "../support/sequences/violation.js";
import type { Latency, Numbers } from "../support/sequences/numbers.js";
import type { StreamViolation } from "../support/streams/check.js";
import type { StreamFigures } from "../support/streams/numbers.js";
import type { FaultCounts } from "./inject.js";
import type { Fault } from "./plan.js";

export interface ChaosReport {
  readonly seed: number;
  readonly faults: FaultCounts;
  readonly violations: readonly (Violation | StreamViolation)[];
  /** Why the run proves less than it should; empty after a complete run. */
  readonly shortfalls: readonly string[];
  readonly numbers: Numbers;
  /** Figures of the streams; absent if the run had no streams. */
  readonly streams?: StreamFigures;
  readonly plan: readonly Fault[];
  readonly history: History;
}

export function renderReport({ seed, faults, violations, shortfalls, numbers, streams }: ChaosReport): string {
  const list = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ");
  const latency = (name: string, { count, p50Ms, p99Ms, maxMs }: Latency) =>
    `  ${name}: ${count} requests, wait p50 ${p50Ms} ms, p99 ${p99Ms} ms, max ${maxMs} ms`;
  const mebibytes = Object.entries(numbers.peak).map(([name, value]) =>
    name.endsWith("Bytes") ? `${name.replace("Bytes", "")} ${Math.round(value / 1_048_576)} MiB` : `${name} ${value}`,
  );
  const shown = violations.slice(0, 40).map((violation) => {
    const { invariant, what } = violation;
    const names = "stream" in violation ? [violation.stream] : [violation.sequence, violation.request];
    const who = names.filter((one) => one !== undefined).join(" ");
    return `  ${invariant} ${who}${who === "" ? "" : ": "}${what}`;
  });
  const read = streams === undefined ? [] : [renderStreams(streams)];
  return [
    `seed ${seed}, ${numbers.seconds} s`,
    `  faults: ${list(faults)}`,
    `  attempts: ${numbers.attempts}, of which unknown: ${list(numbers.unknown) || "none"}`,
    `  clients: ${Object.entries(numbers.clients)
      .map(([name, { attempts, again }]) => `${name} ${attempts} (${again} again)`)
      .join(", ")}`,
    `  ended in an error: ${list(numbers.failed) || "none"}`,
    latency("load", numbers.load),
    latency("bystander", numbers.bystander),
    ...read,
    `  workers: ${numbers.workerLives} lives; logged: ${list(numbers.workerEvents) || "nothing"}`,
    `  peaks: ${mebibytes.join(", ")}`,
    ...shortfalls.map((what) => `  NOT REACHED ${what}`),
    violations.length === 0 ? "  0 violations" : `  ${violations.length} VIOLATIONS`,
    ...shown,
    ...(violations.length > shown.length ? [`  … and ${violations.length - shown.length} more`] : []),
  ].join("\n");
}

function renderStreams({
  streams,
  records,
  takenOver,
  reconnects,
  longestPauseMs,
  messagesChecked,
}: StreamFigures): string {
  return (
    `  streams: ${streams} with ${records} records, ${takenOver} taken over, ${reconnects} reconnects, ` +
    `longest pause ${Math.round(longestPauseMs)} ms, ${messagesChecked} messages checked`
  );
}
