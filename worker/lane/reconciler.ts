/**
 * Finds and repairs steps that no worker would ever run, for example after an operator has deleted
 * an entry by hand. The reconciler looks at a model's lanes one after the other, and the workers of
 * a model take turns.
 */
import type { Logger } from "pino";
import { publishEnd } from "#shared/capture/capture.js";
import { errorKinds } from "#shared/errors.js";
import type { Bus } from "#shared/nats/connect.js";
import { pinText, type RequestAddress } from "#shared/queue/address.js";
import { GROUP, laneKeys, liveKey } from "#shared/queue/keys.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { giveOutcome } from "#shared/queue/ends/give-outcome.js";
import { timeAt } from "#shared/redis/clock.js";
import { delay, retrying } from "#shared/retry.js";
import type { World } from "#shared/world.js";
import { readLoads } from "#shared/queue/pieces/load.js";
import { readSequences, type SequenceFacts } from "#shared/queue/pieces/sequence.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import { inLane, lanesOf, type LaneQueue, type ModelQueue } from "#shared/queue/work/lane.js";
import { beginRound } from "#shared/queue/work/upkeep/begin-round.js";
import { mendSequence } from "#shared/queue/work/commit/mend-sequence.js";
import { pinsElsewhere } from "#shared/queue/work/read/other-lanes.js";
import { notePinInUse } from "#shared/queue/pins.js";
import { orphans } from "#shared/queue/work/liveness/orphans.js";
import { readProgress } from "#shared/queue/work/streams/read-progress.js";
import { reapConsumers } from "#shared/queue/reap-consumers.js";
import { refill } from "#shared/queue/work/read/refill.js";
import { lanesByKey } from "#shared/queue/work/stream.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import { requeue } from "#shared/queue/work/read/requeue.js";
import { sealedOutcome } from "#shared/queue/work/commit/sealed-outcome.js";
import { owners, strays } from "#shared/queue/work/liveness/strays.js";
import type { OutageGuard } from "./outage-guard.js";
import type { Settler } from "./settle.js";
import { tellGateway } from "./tell-gateway.js";

export interface Reconciler {
  readonly queue: ModelQueue;
  /** How long the model's sequences may be idle, in ms; undefined for a model without sequences. */
  readonly maxIdleMs: number | undefined;
  /** Whether a model with sequences also takes requests that are no steps. */
  readonly takesBoth?: boolean;
  /** The number of models that this worker serves. Their looks at lanes share a budget. */
  readonly models: number;
  /** The number of workers in the fleet, as far as this worker knows. */
  readonly living: () => number;
  readonly outageGuard: OutageGuard;
  readonly settler: Pick<Settler, "bus">;
  readonly world: World;
  readonly log: Logger;
}

/** Shortest time between two rounds of a lane, in ms, by any workers. */
const EVERY_MS = 2_000;
/** Shortest time between two looks at lanes by one worker, in ms, with any number of models. */
const LOOK_MS = 500;
/** Most sequences that one round looks at. The rest waits for the next round. */
const LIMIT = 4_000;
/** Most entries that one round looks at: fewer, because a round reads entries whole. */
const ENTRIES_LIMIT = 1_000;
/** Idle sequences that one call removes. They keep Redis's only thread busy for 2 ms. */
const REAP_LIMIT = 200;
/** Sequences of the index whose facts a round reads: less than 1 ms of Redis. */
const PAGE = 1_000;
/**
 * In ms. A step that has been queued for longer may have lost its entry. With more load than the
 * fleet can carry, nearly all steps are so old, and a round looks at some.
 */
const STALL_MS = 5_000;
const MOST_STALLED = 100;
/** Sequences that a round looks at side by side. */
const LOOKS_AT_ONCE = 50;
/**
 * In one of this many rounds, the reconciler looks at the busy sequences although the counts agree:
 * a surplus entry may hide a missing entry, and the checkpoints need a renewal once a day. Such a
 * round also looks for their entries in other lanes.
 */
const AGREED_EVERY = 64;
/**
 * The largest factor by which a worker slows its looks at a lane when other workers make the
 * rounds.
 */
const MOST_BACKOFF = 16;
/**
 * In ms. A worker missing from the registry gets a second look after this time. It may be joining,
 * or a wiped registry may not have the living workers' new announcements yet.
 */
const STRAY_MS = 1_000;
/** A consumer without entries takes a little memory, so one of this many rounds removes them. */
const REAP_EVERY = 15;
/** A consumer that has not read for longer than this, in ms, belongs to a process that is gone. */
const CONSUMER_IDLE_MS = 60_000;
/** How long Redis keeps the error of a lost request, in ms. */
const OUTCOME_TTL_MS = 60_000;
/** How long the worker retries to end a lost request, in ms. */
const END_BUDGET_MS = 5_000;

/** The result of a look at a lane. */
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
 * The factor by which a worker looks less often than a worker that is alone. With many workers,
 * most looks would find that another worker makes the round. So there are about three looks to a
 * round, with any number of workers. After many deaths, the remaining workers look as often as a
 * fleet of their number.
 * @param living the number of workers in the fleet
 */
export function nextBackoff(backoff: number, looked: Looked, living: number): number {
  const factor = looked === "taken" ? 1.5 : looked === "begun" ? 0.5 : 1;
  return Math.max(1, Math.min(backoff * factor, living, MOST_BACKOFF));
}

async function reconcile(queue: LaneQueue, reconciler: Reconciler, signal: AbortSignal): Promise<Looked> {
  const { log } = reconciler;
  const { redis, lane } = queue;
  const { ready, live, queue: parking, parked } = laneKeys(lane);
  // Nearly always the lane is empty, so there is nothing to mend.
  const { maxIdleMs, takesBoth } = reconciler;
  const hasSequences = maxIdleMs !== undefined;
  const counts = await Promise.all([
    ...(hasSequences ? [redis.zcard(live)] : []),
    ...(queue.streams === true || takesBoth || !hasSequences ? [redis.xlen(ready)] : []),
    redis.exists(parking),
  ]);
  if (counts.every((count) => count === 0)) return "empty";
  if (!(await beginRound(queue, EVERY_MS))) return "taken";
  if (hasSequences) while (!signal.aborted && (await reapIdle(queue, REAP_LIMIT, maxIdleMs)) === REAP_LIMIT);
  if (counts.at(-1) !== 0) await refill(redis, [{ lanes: lanesByKey([lane]), room: 1 }]);
  const entries = (await redis.xlen(ready)) + (await redis.hlen(parked));
  if (entries > 0) await requeueOrphans(queue, log);
  if (hasSequences) await mendBusy(queue, entries, reconciler, signal);
  if (entries > 0) await buryStrays(queue, reconciler, signal);
  if (hasSequences) await mendStalled(queue, entries, reconciler, signal);
  if (reconciler.world.random() < 1 / REAP_EVERY) await reapConsumers(redis, ready, GROUP, CONSUMER_IDLE_MS);
  return "begun";
}

/** An entry that looks orphaned is mostly just settling. The script looks again, and decides. */
async function requeueOrphans(queue: LaneQueue, log: Logger): Promise<void> {
  const suspected = await orphans(queue, ENTRIES_LIMIT);
  const fresh = suspected.length === 0 ? 0 : await requeue(queue, suspected);
  if (fresh > 0) log.error({ count: fresh }, "orphaned entries queued anew");
}

/**
 * Looks at a page of the sequences that the index has as busy, if the counts make them worth it.
 * @param entries the lane's number of entries just now
 */
async function mendBusy(queue: LaneQueue, entries: number, reconciler: Reconciler, signal: AbortSignal): Promise<void> {
  const { redis, lane } = queue;
  const { world } = reconciler;
  const lot = world.random();
  const live = liveKey(lane);
  const count = await redis.zcount(live, "+inf", "+inf");
  if (!isWorthLooking(count, entries, lot)) return;
  const first = firstOfRound(count, world.random(), LIMIT);
  const busy = await redis.zrange(live, "+inf", "+inf", "BYSCORE", "LIMIT", first, LIMIT);
  await mendAll(queue, busy, reconciler, signal);
  if (lot < 1 / AGREED_EVERY) await noteOtherLanes(queue, busy, reconciler);
}

/**
 * Looks at the sequences of a page of the index whose steps have been queued for a while. The index
 * has most busy sequences at the time of an earlier rest, so its own counts do not tell that an
 * entry is missing. If there are enough entries for all that the page has, a round looks at some.
 * @param entries the lane's number of entries just now
 */
async function mendStalled(
  queue: LaneQueue,
  entries: number,
  reconciler: Reconciler,
  signal: AbortSignal,
): Promise<void> {
  const { redis, lane } = queue;
  const { world } = reconciler;
  const [load] = await readLoads(redis, redis.isCluster ? lane.bucket : undefined, [`m:${lane.model}`]);
  if (load?.requests === 0) return;
  const live = liveKey(lane);
  const first = firstOfRound(await redis.zcard(live), world.random(), PAGE);
  const names = await redis.zrange(live, String(first), String(first + PAGE - 1));
  const facts = await readSequences(redis, lane, names);
  const queuedBefore = (await timeAt(redis, live)) - STALL_MS;
  const found = names.flatMap((name, i) => (isStalled(facts[i], queuedBefore) ? [{ name, on: facts[i]?.on }] : []));
  const start = Math.floor(world.random() * found.length);
  const some = [...found.slice(start), ...found.slice(0, start)].slice(0, MOST_STALLED);
  const looked = found.length > entries ? found : some;
  await mendAll(
    queue,
    looked.map(({ name }) => name),
    reconciler,
    signal,
  );
  const elsewhere = found.filter(({ on }) => on !== pinText(lane)).map(({ name }) => name);
  if (elsewhere.length > 0) await noteOtherLanes(queue, elsewhere, reconciler);
}

/** A drain waits for this. Under load, a thousand looks would take longer than the drain may. */
async function mendAll(
  queue: LaneQueue,
  names: readonly string[],
  reconciler: Reconciler,
  signal: AbortSignal,
): Promise<void> {
  for (let i = 0; i < names.length && !signal.aborted; i += LOOKS_AT_ONCE) {
    await Promise.all(names.slice(i, i + LOOKS_AT_ONCE).map((name) => mend(queue, name, reconciler)));
  }
}

/**
 * Whether a sequence has a step that was queued before a time, in Redis ms. An entry's id begins
 * with the time at which it was queued; a parked step has none, and counts as long queued.
 */
export function isStalled(facts: Pick<SequenceFacts, "entry"> | undefined, queuedBefore: number): boolean {
  if (facts === undefined || facts.entry === "") return false;
  return facts.entry === "@" || Number.parseInt(facts.entry, 10) <= queuedBefore;
}

/**
 * A step may wait so long behind a step of another version that the fleet forgets the step's own
 * version and removes its lane. At its turn, the step would lie in a lane that no worker looks at,
 * unless the reconciler notes that version.
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
 * Whether a round looks at the busy sequences. Each has an entry, perhaps in the lane of another
 * version of the model. With at least as many entries as busy sequences, probably no entry is
 * missing.
 * @param lot from 0 to below 1
 */
export function isWorthLooking(busy: number, entries: number, lot: number): boolean {
  return busy > 0 && (busy > entries || lot < 1 / AGREED_EVERY);
}

/**
 * The place in a list that a round begins with. Other workers make most rounds, so a lot chooses
 * the page: each page gets its turn in time.
 * @param count the length of the list
 * @param lot from 0 to below 1
 */
export function firstOfRound(count: number, lot: number, page: number): number {
  return Math.floor(lot * Math.max(1, Math.ceil(count / page))) * page;
}

/** Frees the entries of workers that the registry does not know. */
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

/** Ends the request of a sequence whose queued step is gone, so that the sequence can continue. */
async function mend(queue: LaneQueue, name: string, { settler, world, log }: Reconciler): Promise<void> {
  const address = await mendSequence(queue, name);
  if (address === undefined) return;
  log.error({ request: address.request }, "a queued step was deleted from outside");
  // Later rounds do not find this sequence broken again, so they would not end the request.
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
  // The stream's readers already know its end. Redis refuses the commit that would have stored the
  // same outcome, because the sequence has moved on. So the outcome is written here.
  const [progress] = await readProgress(redis, [address]);
  await giveOutcome(redis, address, sealedOutcome(progress?.records ?? []), OUTCOME_TTL_MS, true);
}
