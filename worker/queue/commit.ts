/** The typed wrappers of commit-steps.lua and commit-requests.lua: the one place where a step takes effect. */
import type { Delivery } from "#shared/contract/entry.js";
import type { StoredOutcome } from "#shared/contract/outcome.js";
import { GROUP, laneKeys, outcomeKey, sequenceKeys } from "#shared/keys.js";
import { defineScript, words, type Arg } from "#shared/redis/script.js";
import { DEAD_LIMIT, type LaneQueue } from "./lane.js";

/** What becomes of the sequence's checkpoint; see commit-steps.lua. */
export type StateChange =
  { readonly action: "put"; readonly checkpoint: Buffer } | { readonly action: "keep" | "drop" | "fail" };

export interface Settlement {
  readonly delivery: Delivery;
  readonly outcome: StoredOutcome;
  /** Ignored for stateless requests. */
  readonly state: StateChange;
  /** Why the request is set aside, or undefined. */
  readonly deadReason: string | undefined;
}

const fates = ["committed", "superseded", "already", "lost"] as const;
export type Fate = (typeof fates)[number];

const commitSteps = defineScript(new URL("./commit-steps.lua", import.meta.url), words(fates));
const commitRequests = defineScript(new URL("./commit-requests.lua", import.meta.url), words(fates));

/** What one script call writes at most, unless a single step writes more: past that it would hold up everybody's renewals. */
const BYTES_PER_CALL = 1_048_576;

/** @returns one fate per settlement, in order. Safe to repeat: what an earlier call did reads as `already`. */
export async function commit(
  queue: LaneQueue,
  settlements: readonly Settlement[],
  maxIdleMs: number | undefined,
): Promise<Fate[]> {
  const calls = chunks(settlements).map((chunk) => commitChunk(queue, chunk, maxIdleMs));
  return (await Promise.all(calls)).flat();
}

function chunks(settlements: readonly Settlement[]): Settlement[][] {
  const done: Settlement[][] = [];
  let room = 0;
  for (const settlement of settlements) {
    const { outcome, state } = settlement;
    const bytes = outcome.body.length + (state.action === "put" ? state.checkpoint.length : 0);
    if (bytes > room || done.length === 0) {
      done.push([]);
      room = BYTES_PER_CALL;
    }
    done.at(-1)?.push(settlement);
    room -= bytes;
  }
  return done;
}

function commitChunk(
  queue: LaneQueue,
  settlements: readonly Settlement[],
  maxIdleMs: number | undefined,
): Promise<Fate[]> {
  const { ready, runs, live, dead } = laneKeys(queue.lane);
  const keys: string[] = maxIdleMs === undefined ? [ready, runs, dead] : [ready, runs, live, dead];
  const args: Arg[] =
    maxIdleMs === undefined ? [GROUP, queue.consumer, DEAD_LIMIT] : [GROUP, queue.consumer, maxIdleMs, DEAD_LIMIT];
  for (const { delivery, outcome, state, deadReason = "" } of settlements) {
    keys.push(outcomeKey(queue.lane, delivery.request));
    if (delivery.sequence === undefined) {
      args.push(delivery.entry, outcome.kind, outcome.body, delivery.outcomeTtlMs, deadReason);
      continue;
    }
    const { seq, state: checkpoint, wait } = sequenceKeys(queue.lane, delivery.sequence);
    keys.push(seq, checkpoint, wait);
    args.push(delivery.entry, delivery.sequence, delivery.step, delivery.start ? 1 : 0);
    args.push(outcome.kind, outcome.body, delivery.outcomeTtlMs);
    args.push(state.action, state.action === "put" ? state.checkpoint : "", deadReason);
  }
  return (maxIdleMs === undefined ? commitRequests : commitSteps)(queue.redis, keys, args);
}
