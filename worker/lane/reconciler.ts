/**
 * Looks into a model's lanes, one after the other, for steps that nobody would ever run, such as
 * after somebody deleted an entry by hand, and puts them right. The workers of a model take turns.
 */
import type { Logger } from "pino";
import { publishEnd } from "#shared/capture/capture.js";
import { errorKinds } from "#shared/errors.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { GROUP, laneKeys } from "#shared/queue/keys.js";
import { cancelRequest } from "#shared/queue/cancel.js";
import { giveOutcome } from "#shared/queue/give-outcome.js";
import { delay, retrying } from "#shared/retry.js";
import type { World } from "#shared/world.js";
import { bury } from "#shared/queue/work/bury.js";
import { inLane, lanesOf, type LaneQueue, type ModelQueue } from "#shared/queue/work/lane.js";
import { beginRound } from "#shared/queue/work/begin-round.js";
import { mendSequence } from "#shared/queue/work/mend-sequence.js";
import { pinsElsewhere } from "#shared/queue/work/other-lanes.js";
import { notePinInUse } from "#shared/queue/pins.js";
import { orphans } from "#shared/queue/work/orphans.js";
import { readProgress } from "#shared/queue/work/read-progress.js";
import { reapConsumers } from "#shared/queue/reap-consumers.js";
import { refill } from "#shared/queue/work/refill.js";
import { lanesByKey } from "#shared/queue/work/stream.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import { requeue } from "#shared/queue/work/requeue.js";
import { sealedOutcome } from "#shared/queue/work/sealed-outcome.js";
import { owners, strays } from "#shared/queue/work/strays.js";
import type { OutageGuard } from "./outage-guard.js";
import type { Settler } from "./settle.js";
import { tellGateway } from "./tell-gateway.js";

export interface Reconciler {
  readonly queue: ModelQueue;
  /** How long the model's sequences are kept idle, in ms; undefined where it has none. */
  readonly maxIdleMs: number | undefined;
  /** How many models this worker serves: their looks at lanes share a budget. */
  readonly models: number;
  /** How many workers the fleet has, as far as this one knows. */
  readonly living: () => number;
  readonly outageGuard: OutageGuard;
  readonly settler: Pick<Settler, "bus">;
  readonly world: World;
  readonly log: Logger;
}

/** Two looks at a lane are at least so far apart, in ms, whoever makes them. */
const EVERY_MS = 2_000;
/** A worker looks at a lane at most this often, in ms, whatever it serves. */
const LOOK_MS = 500;
/** Most sequences that one round looks at. The rest waits for the next round. */
const LIMIT = 4_000;
/** Most entries that one round looks at: fewer, since it reads them whole. */
const ENTRIES_LIMIT = 1_000;
/** Idle sequences that one call removes. Redis's only thread is busy with them for 2 ms. */
const REAP_LIMIT = 200;
/** Sequences that are looked at side by side. */
const LOOKS_AT_ONCE = 50;
/**
 * Of so many rounds in which the counts agree, one looks at the busy sequences all the same: one
 * thing too many may hide one too few, and their checkpoints are to be renewed once a day. Such a
 * round also looks in which other lanes their entries are.
 */
const AGREED_EVERY = 64;
/** A lane in which others make the rounds is looked at this much less often, at most. */
const MOST_BACKOFF = 16;
/**
 * A worker that nobody knows is looked at again after this time: it may only just be joining, or
 * the registry was wiped, and the living announce themselves again.
 */
const STRAY_MS = 1_000;
/** Consumers that own nothing take a little memory each, so one round of so many removes them. */
const REAP_EVERY = 15;
/** A consumer that has not read for this long belongs to a process that is gone. */
const CONSUMER_IDLE_MS = 60_000;
/** How long the error of a lost request is kept. */
const OUTCOME_TTL_MS = 60_000;
/** How long ending a lost request is retried. */
const END_BUDGET_MS = 5_000;

/** What a look at a lane has come to. */
type Looked = "empty" | "taken" | "begun";

/** Takes part in the rounds of the model's lanes until `signal` aborts. */
export async function reconcileWhileOpen(reconciler: Reconciler, signal: AbortSignal): Promise<void> {
  const { queue, models, living, world, log } = reconciler;
  const lanes = lanesOf(queue);
  const pauseMs = Math.max(EVERY_MS / lanes.length, LOOK_MS * models);
  const first = Math.floor(world.random() * lanes.length);
  let backoff = 1;
  for (let i = first; !signal.aborted; i++) {
    await delay(pauseMs * backoff * (0.8 + world.random() * 0.4), signal, world);
    const lane = lanes[i % lanes.length];
    if (signal.aborted || lane === undefined || queue.redis.status !== "ready") continue;
    try {
      backoff = nextBackoff(backoff, await reconcile(inLane(queue, lane), reconciler, signal), living());
    } catch (error) {
      log.debug({ error: String(error) }, "reconcile failed; the next round tries again");
    }
  }
}

/**
 * How much less often a worker looks than one that is alone. Where there are many, most looks would
 * find that another worker makes the round: so there are about three looks to a round, however many
 * they are. When most have died the rest looks as often as so few do.
 * @param living how many workers the fleet has
 */
export function nextBackoff(backoff: number, looked: Looked, living: number): number {
  const factor = looked === "taken" ? 1.5 : looked === "begun" ? 0.5 : 1;
  return Math.max(1, Math.min(backoff * factor, living, MOST_BACKOFF));
}

async function reconcile(queue: LaneQueue, reconciler: Reconciler, signal: AbortSignal): Promise<Looked> {
  const { log } = reconciler;
  const { redis, lane } = queue;
  const { ready, live, queue: parking, parked } = laneKeys(lane);
  // Nearly always there is nothing in the lane, and so nothing to mend.
  const { maxIdleMs } = reconciler;
  const hasSequences = maxIdleMs !== undefined;
  const counts = await Promise.all([
    ...(hasSequences ? [redis.zcard(live)] : []),
    ...(queue.streams === true || !hasSequences ? [redis.xlen(ready)] : []),
    redis.exists(parking),
  ]);
  if (counts.every((count) => count === 0)) return "empty";
  if (!(await beginRound(queue, EVERY_MS))) return "taken";
  if (hasSequences) while (!signal.aborted && (await reapIdle(queue, REAP_LIMIT, maxIdleMs)) === REAP_LIMIT);
  if (counts.at(-1) !== 0) await refill(redis, [{ lanes: lanesByKey([lane]), room: 1 }]);
  const entries = (await redis.xlen(ready)) + (await redis.hlen(parked));
  if (entries > 0) await requeueOrphans(queue, log);
  await mendBusy(queue, entries, reconciler, signal);
  if (entries > 0) await buryStrays(queue, reconciler, signal);
  if (reconciler.world.random() < 1 / REAP_EVERY) await reapConsumers(redis, ready, GROUP, CONSUMER_IDLE_MS);
  return "begun";
}

/** What looks orphaned is mostly just being settled. The script looks again, and decides. */
async function requeueOrphans(queue: LaneQueue, log: Logger): Promise<void> {
  const suspected = await orphans(queue, ENTRIES_LIMIT);
  const fresh = suspected.length === 0 ? 0 : await requeue(queue, suspected);
  if (fresh > 0) log.error({ count: fresh }, "orphaned entries queued anew");
}

/** @param entries how many the lane had just now */
async function mendBusy(queue: LaneQueue, entries: number, reconciler: Reconciler, signal: AbortSignal): Promise<void> {
  const { redis, lane } = queue;
  const lot = reconciler.world.random();
  const { live } = laneKeys(lane);
  const count = await redis.zcount(live, "+inf", "+inf");
  if (!isWorthLooking(count, entries, lot)) return;
  const first = firstOfRound(count, reconciler.world.random());
  const busy = await redis.zrange(live, "+inf", "+inf", "BYSCORE", "LIMIT", first, LIMIT);
  // A drain waits for this round. Under load a look takes a while, and a thousand of them would
  // take longer than the drain may.
  for (let i = 0; i < busy.length && !signal.aborted; i += LOOKS_AT_ONCE) {
    const some = busy.slice(i, i + LOOKS_AT_ONCE);
    await Promise.all(some.map((name) => mend(queue, name, reconciler)));
    if (lot < 1 / AGREED_EVERY) await noteOtherLanes(queue, some, reconciler);
  }
}

/**
 * A step may wait behind one of another version for so long that its own version is forgotten, and
 * its lane removed. When its turn comes it lies in a lane that nobody looks at, unless it is noted.
 */
export async function noteOtherLanes(
  queue: LaneQueue,
  names: readonly string[],
  { maxIdleMs, log }: Pick<Reconciler, "maxIdleMs" | "log">,
): Promise<void> {
  const { redis, lane, streams = false } = queue;
  for (const { version, digest } of await pinsElsewhere(queue, names)) {
    const pin = { model: lane.model, version, digest, streams, maxIdleMs };
    if (await notePinInUse(redis, pin)) log.warn({ version }, "a step is queued for a version that was forgotten");
  }
}

/**
 * Whether a round looks at the busy sequences, each of which has an entry. Where there are as many
 * entries none is gone, for all that is known. Those of another version of the model are in its
 * lane.
 * @param lot from 0 to below 1
 */
export function isWorthLooking(busy: number, entries: number, lot: number): boolean {
  return busy > 0 && (busy > entries || lot < 1 / AGREED_EVERY);
}

/**
 * Which of the busy sequences a round begins with. Rounds are other workers' in turn, so the lot
 * decides: sooner or later it falls on each page.
 * @param count of busy sequences
 * @param lot from 0 to below 1
 */
export function firstOfRound(count: number, lot: number): number {
  return Math.floor(lot * Math.max(1, Math.ceil(count / LIMIT))) * LIMIT;
}

/** Leaves what is pending with workers that nobody knows to the living. */
async function buryStrays(
  queue: LaneQueue,
  { outageGuard, world, log }: Reconciler,
  signal: AbortSignal,
): Promise<void> {
  const found = await strays(queue, await owners(queue));
  if (found.length === 0) return;
  await delay(STRAY_MS, signal, world);
  if (signal.aborted || !outageGuard.silenceCounts(world.now())) return;
  for (const worker of await strays(queue, found)) {
    const buried = await bury(queue.redis, worker, { why: "stray" }, [queue.lane]);
    if (buried) log.warn({ worker }, "nobody knew of a worker that is gone; its steps are free");
  }
}

/** Ends the request of a sequence whose queued step is gone, and lets the sequence go on. */
async function mend(queue: LaneQueue, name: string, { settler, world, log }: Reconciler): Promise<void> {
  const address = await mendSequence(queue, name);
  if (address === undefined) return;
  log.error({ request: address.request }, "a queued step was deleted from outside");
  // The sequence will not be found broken again, so no later round knows of this request.
  await retrying(() => end(queue, settler.bus, address), { budgetMs: END_BUDGET_MS, world });
}

async function end({ redis, streams = false }: LaneQueue, bus: Bus, address: RequestAddress): Promise<void> {
  const cancelled = await cancelRequest(redis, address, {
    code: "request_lost",
    message: errorKinds.request_lost.texts.destroyed,
    ttlMs: OUTCOME_TTL_MS,
    stream: streams,
  });
  if (cancelled.said === "given") {
    if (cancelled.last !== undefined) void publishEnd({ redis, bus }, address, cancelled.last);
    await tellGateway(redis, address);
  }
  if (cancelled.said !== "sealed") return;
  // The stream's readers have been told how it ended. The commit that would have said the same is
  // refused from now on, because the sequence has moved on. So its outcome is written here.
  const [progress] = await readProgress(redis, [address]);
  await giveOutcome(redis, address, sealedOutcome(progress?.records ?? []), OUTCOME_TTL_MS, true);
}
