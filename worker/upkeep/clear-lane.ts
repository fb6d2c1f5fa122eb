/**
 * Ends the requests of a lane that no worker serves any more, each with an error. As in a worker,
 * the caller owns the entries and commits them, so that the sequences of steps can continue.
 */
import { outcomeOf, storeOutcome } from "#shared/contract/outcome.js";
import { publishEnd } from "#shared/capture/capture.js";
import { errorKinds, InferenceError } from "#shared/errors.js";
import type { Bus } from "#shared/nats/connect.js";
import type { Delivery } from "#shared/queue/entry.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { registryKeys } from "#shared/queue/keys.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { discard } from "#shared/queue/work/read/discard.js";
import { graveOf, graveText } from "#shared/queue/work/liveness/graves.js";
import type { LaneQueue } from "#shared/queue/work/lane.js";
import { readProgress } from "#shared/queue/work/streams/read-progress.js";
import { refill } from "#shared/queue/work/read/refill.js";
import { sealedOutcome } from "#shared/queue/work/commit/sealed-outcome.js";
import type { Settlement } from "#shared/queue/work/commit/settlement.js";
import { owners } from "#shared/queue/work/liveness/strays.js";
import { lanesByKey, type Taken } from "#shared/queue/work/stream.js";
import { take } from "#shared/queue/work/read/take.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { isReplyError } from "#shared/redis/script.js";
import { tellGateway } from "../lane/tell-gateway.js";

/** A lane that no worker serves. */
export interface RetiredLane {
  readonly queue: LaneQueue;
  readonly bus: Bus;
  /**
   * How long the model's sequences may go without a step, in ms; undefined for a model without
   * sequences.
   */
  readonly maxIdleMs: number | undefined;
  /** Whether the lane's sequences can continue under another version. */
  readonly hasHeir: boolean;
}

/** Requests that end side by side. */
const AT_ONCE = 100;

/**
 * Resolves when the lane has only entries that living workers still finish. Safe to repeat, and
 * safe in two workers at a time.
 * @returns how many requests were ended
 */
export async function clearLane(lane: RetiredLane, signal: AbortSignal): Promise<number> {
  const { queue } = lane;
  let ended = 0;
  while (!signal.aborted) {
    const { deliveries, unreadable } = await takeAny(queue);
    if (deliveries.length + unreadable.length === 0) {
      // The scripts that take out entries also refill the lane. Here there was no entry to take
      // out.
      if ((await refill(queue.redis, [{ lanes: lanesByKey([queue.lane]), room: AT_ONCE }])) === 0) break;
    }
    if (unreadable.length > 0) await discard(queue, unreadable);
    const settlements = await Promise.all(deliveries.map((delivery) => end(lane, delivery)));
    await commit(queue, settlements, lane.maxIdleMs);
    ended += deliveries.length;
  }
  return ended;
}

/** Takes entries that no worker has taken yet, or else the entries of workers that are gone. */
async function takeAny(queue: LaneQueue): Promise<Taken> {
  const { redis, consumer, lane } = queue;
  const lanes = lanesByKey([lane]);
  let taken: Taken;
  try {
    taken = await take(redis, consumer, lanes, AT_ONCE);
  } catch (error) {
    if (!isReplyError(error, "NOGROUP")) throw error;
    await createGroup(redis, lane);
    taken = await take(redis, consumer, lanes, AT_ONCE);
  }
  return taken.deliveries.length + taken.unreadable.length > 0 ? taken : takeFromTheGone(queue);
}

async function takeFromTheGone(queue: LaneQueue): Promise<Taken> {
  const { redis, consumer, lane } = queue;
  const all = await owners(queue);
  const living = all.length === 0 ? [] : await redis.zmscore(registryKeys.workers, ...all);
  // This worker owns entries here only after a call whose reply was lost.
  for (const owner of all.filter((worker, i) => living[i] === null || worker === consumer)) {
    const found = await takeFrom(queue, owner, AT_ONCE);
    if (found.said === "empty") await redis.zrem(registryKeys.graves, graveText(graveOf(owner, lane)));
    if (found.deliveries.length + found.unreadable.length > 0) return found;
  }
  return { deliveries: [], unreadable: [] };
}

/**
 * Gives a request its outcome, as from outside a worker. The commit of the settlement then only
 * takes the entry out of the queue, except for a sealed stream, whose outcome it stores.
 */
async function end({ queue, bus, hasHeir }: RetiredLane, delivery: Delivery): Promise<Settlement> {
  const { redis, streams = false } = queue;
  const { sequence, start, outcomeTtlMs: ttlMs } = delivery;
  // A step without START needs its sequence's state. All other requests can come again to the
  // present version.
  const canComeAgain = sequence === undefined || start || hasHeir;
  const code = canComeAgain ? "unavailable" : "version_retired";
  const message = canComeAgain ? errorKinds.unavailable.texts.versionLeft : errorKinds.version_retired.texts.meanwhile;
  const cancelled = await cancelRequest(redis, delivery, { code, message, ttlMs, stream: streams });
  if (cancelled.said === "given") {
    if (cancelled.last !== undefined) void publishEnd({ redis, bus }, delivery, cancelled.last);
    await tellGateway(redis, delivery);
  }
  let outcome = storeOutcome(outcomeOf(new InferenceError(code, message)));
  if (cancelled.said === "sealed") {
    const [progress] = await readProgress(redis, [delivery]);
    outcome = sealedOutcome(progress?.records ?? []);
  }
  return { delivery, outcome, state: { action: start ? "drop" : "keep" }, deadReason: undefined };
}
