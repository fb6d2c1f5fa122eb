/** The figures of a run, for reading: none of them decides whether it passed. */
import type { CommitSample, ResourceSample } from "../history/facts.js";
import type { Event, History, RequestHistory } from "../history/history.js";
import type { Violation } from "../history/invariants.js";
import { latencyOf, type Latency } from "../history/latency.js";
import type { Fleet } from "../setup/fleet.js";
import type { FaultCounts } from "./inject.js";
import type { Fault } from "./plan.js";

export interface Numbers {
  readonly seconds: number;
  readonly requests: number;
  readonly attempts: number;
  /** Attempts that ended unknown, by what the client saw. */
  readonly unknown: Readonly<Record<string, number>>;
  readonly load: Latency;
  readonly bystander: Latency;
  /** Lines of the workers' logs, by message, that tell of recovery. */
  readonly workerEvents: Readonly<Record<string, number>>;
  readonly workerLives: number;
  readonly peak: Readonly<Record<string, number>>;
  readonly commitSamples: number;
}

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

interface Material {
  readonly fleet: Fleet;
  readonly requests: ReadonlyMap<string, RequestHistory>;
  readonly events: readonly Event[];
  readonly resources: readonly ResourceSample[];
  readonly commits: readonly CommitSample[];
}

export function summarize({ fleet, requests, events, resources, commits }: Material): Numbers {
  const all = [...requests.values()];
  const isBystander = ({ ask }: RequestHistory) => ask.sequence === undefined;
  const unknown = tally(events.flatMap((event) => (event.kind === "unknown" ? [event.why] : [])));
  const levels = new Set([30, 40, 50, 60]);
  const told = fleet.workers.flatMap(({ lives }) => lives.flatMap(({ lines }) => lines.map(({ fields }) => fields)));
  const notable = (fields: Readonly<Record<string, unknown>>) =>
    levels.has(Number(fields["level"])) && typeof fields["msg"] === "string" ? [fields["msg"]] : [];
  const peak: Record<string, number> = {};
  for (const { name, what, value } of resources) {
    const key = `${name.replace(/-\d+$/, "")} ${what}`;
    peak[key] = Math.max(peak[key] ?? 0, value);
  }
  return {
    seconds: Math.round((events.at(-1)?.at ?? 0) / 100) / 10,
    requests: all.length,
    attempts: events.filter(({ kind }) => kind === "submit").length,
    unknown,
    load: latencyOf(all.filter((one) => !isBystander(one))),
    bystander: latencyOf(all.filter(isBystander)),
    workerEvents: tally(told.flatMap(notable)),
    workerLives: fleet.workers.reduce((sum, { lives }) => sum + lives.length, 0),
    peak,
    commitSamples: commits.length,
  };
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

function tally(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
