/**
 * Invariants of each sequence's commits, as far as samples show: commits go forward, and each step
 * has a single commit.
 */
import type { CommitSample } from "./facts.js";
import type { Requests } from "./history.js";
import type { Violation } from "./violation.js";

/**
 * No sequence ever goes back. No commit comes from an entry older than an earlier step's entry: the
 * worker that held such an entry had lost it.
 */
export function neverBack(samples: readonly CommitSample[], requests: Requests): Violation[] {
  return neighbours(samples, requests).flatMap(([before, sample]) => {
    const [one, other] = [before, sample].map(({ done, worker, entry }) => `step ${done} (${worker}, ${entry})`);
    const note = (what: string): Violation[] => [{ invariant: "never back", sequence: sample.sequence, what }];
    if (sample.done < before.done) return note(`went back from ${one} to ${other}`);
    if (sample.done === before.done || !isOlder(sample.entry, before.entry)) return [];
    return note(`${other} was committed from an entry older than that of ${one}`);
  });
}

/** Whether an id of a Redis stream is older than another. Text that is no such id is not older. */
function isOlder(entry: string, than: string): boolean {
  const [a, b] = [entry, than].map((id) => /^(\d+)-(\d+)$/.exec(id)?.slice(1).map(BigInt));
  const [ms = 0n, count = 0n] = a ?? [];
  const [thanMs = 0n, thanCount = 0n] = b ?? [];
  if (a === undefined || b === undefined) return false;
  return ms < thanMs || (ms === thanMs && count < thanCount);
}

/** A single worker commits a step, from a single entry of the queue. */
export function oneCommitter(samples: readonly CommitSample[], requests: Requests): Violation[] {
  return neighbours(samples, requests).flatMap(([before, sample]) => {
    if (before.done !== sample.done || sample.done === 0) return [];
    if (before.worker === sample.worker && before.entry === sample.entry) return [];
    const [one, other] = [before, sample].map(({ worker, entry }) => `${worker} (${entry})`);
    const what = `step ${sample.done} was committed by ${one} and by ${other}`;
    return [{ invariant: "one committer", sequence: sample.sequence, what } as const];
  });
}

/**
 * Pairs each sample with the next sample of its sequence. Leaves out a sequence that begins anew
 * under the same id, because its count starts from 1 again.
 */
function neighbours(samples: readonly CommitSample[], requests: Requests): [CommitSample, CommitSample][] {
  const begunAnew = [...requests.values()].filter(({ ask }) => ask.start === true && (ask.step ?? 1) > 1);
  const reborn = new Set(begunAnew.map(({ ask }) => ask.sequence));
  const latest = new Map<string, CommitSample>();
  const pairs: [CommitSample, CommitSample][] = [];
  for (const sample of samples) {
    if (reborn.has(sample.sequence)) continue;
    const before = latest.get(sample.sequence);
    if (before !== undefined) pairs.push([before, sample]);
    latest.set(sample.sequence, sample);
  }
  return pairs;
}
