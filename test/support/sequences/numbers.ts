/** The figures of an experiment, for readers. No figure decides whether the experiment passed. */
import type { Fleet } from "../fleet/fleet.js";
import type { CommitSample, ResourceSample } from "./facts.js";
import type { Event, RequestHistory } from "./history.js";

export interface Numbers {
  readonly seconds: number;
  readonly requests: number;
  readonly attempts: number;
  /** How many attempts ended unknown, by the error or refusal that the client saw. */
  readonly unknown: Readonly<Record<string, number>>;
  /** How many requests ended in an error, by its code. */
  readonly failed: Readonly<Record<string, number>>;
  /** How many attempts each kind of client made, and how many of these repeated a request. */
  readonly clients: Readonly<Record<string, { readonly attempts: number; readonly again: number }>>;
  readonly load: Latency;
  readonly bystander: Latency;
  /** How many lines of the workers' logs tell of recovery, by message. */
  readonly workerEvents: Readonly<Record<string, number>>;
  readonly workerLives: number;
  readonly peak: Readonly<Record<string, number>>;
  readonly commitSamples: number;
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
    failed: tally(all.flatMap(({ outcomes: [first] }) => (first?.kind === "fail" ? [first.code] : []))),
    clients: clientsIn(events),
    load: latencyOf(all.filter((one) => !isBystander(one))),
    bystander: latencyOf(all.filter(isBystander)),
    workerEvents: tally(told.flatMap(notable)),
    workerLives: fleet.workers.reduce((sum, { lives }) => sum + lives.length, 0),
    peak,
    commitSamples: commits.length,
  };
}

function tally(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

/** The first word of a client's name is its kind. */
function clientsIn(events: readonly Event[]): Numbers["clients"] {
  const found: Record<string, { attempts: number; again: number }> = {};
  for (const event of events) {
    if (event.kind !== "submit") continue;
    const [kind = ""] = event.client.split(" ");
    const counts = (found[kind] ??= { attempts: 0, again: 0 });
    counts.attempts += 1;
    if (event.attempt > 1) counts.again += 1;
  }
  return found;
}

/** How long clients waited, from a request's first submission to its outcome, retries included. */
export interface Latency {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export function latencyOf(requests: Iterable<RequestHistory>): Latency {
  const waits = [...requests].flatMap(({ submits, outcomes }) => {
    const [submit] = submits;
    const [outcome] = outcomes;
    return submit === undefined || outcome === undefined ? [] : [outcome.at - submit.at];
  });
  waits.sort((a, b) => a - b);
  const at = (share: number) =>
    Math.round((waits[Math.min(Math.floor(waits.length * share), waits.length - 1)] ?? 0) * 10) / 10;
  return { count: waits.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
}
