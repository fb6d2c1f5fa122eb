/** How long clients waited, from a request's first submission to its outcome: retries are part of the wait. */
import type { RequestHistory } from "./history.js";

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
