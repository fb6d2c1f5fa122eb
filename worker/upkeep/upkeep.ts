/**
 * Looks after pins that no worker serves any more, for example after a roll-out. Upkeep ends the
 * requests in their lanes with an error, and then removes the pins from Redis. Any worker does this
 * for any model, one worker at a time. Mostly there is nothing to do, and a look then costs two
 * short commands.
 */
import type { Logger } from "pino";
import type { Bus } from "#shared/nats/connect.js";
import type { Lane } from "#shared/queue/address.js";
import { laneKeys, registryKeys } from "#shared/queue/keys.js";
import { readAnnouncements, readMembers, type Members } from "#shared/queue/members.js";
import { announcedModels } from "#shared/queue/work/liveness/announced-lanes.js";
import { beginUpkeep } from "#shared/queue/work/upkeep/begin-round.js";
import { inLane, lanesOf, type LaneQueue } from "#shared/queue/work/lane.js";
import { notePins } from "#shared/queue/work/upkeep/note-pins.js";
import { forgetPin, readPins, type ServedPin } from "#shared/queue/pins.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import { removeLane } from "#shared/queue/work/upkeep/remove-lane.js";
import type { RedisClocks } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import { clearLane } from "./clear-lane.js";
import { hasHeir, standingOf, type Serving } from "./standing.js";

export interface UpkeepSettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  readonly worker: string;
  /** How many lanes each model version has. */
  readonly buckets: number;
  readonly clocks: RedisClocks;
  readonly outageGuard: OutageGuard;
  readonly log: Logger;
}

/** Time between two looks of a worker in a small fleet, in ms. A round takes at least as long. */
const EVERY_MS = 2_000;
/** A larger fleet looks no more often than this many workers would. */
const SMALL_FLEET = 16;
/** The length of a round in which some pins have no worker, but no pin is retired, in ms. */
const CALM_MS = 10_000;
/**
 * Time before a second look at a pin of this standing, in ms. The registry may have lost entries,
 * or gone back, and the living workers announce themselves again.
 */
const DOUBT_MS = { retired: 1_000, forgotten: 8_000 };
/** Idle sequences that one call removes. */
const REAP_LIMIT = 200;

/** Takes part in the rounds until `signal` aborts. */
export async function lookAfterPins(settings: UpkeepSettings, signal: AbortSignal): Promise<void> {
  const { redis, log } = settings;
  let workers = 1;
  while (!signal.aborted) {
    const pauseMs = EVERY_MS * Math.max(1, workers / SMALL_FLEET);
    await delay(pauseMs * (0.5 + Math.random()), signal);
    if (signal.aborted || redis.status !== "ready") continue;
    try {
      workers = await look(settings, signal);
    } catch (error) {
      log.debug({ error: String(error) }, "retired pins could not be looked after; the next round tries again");
    }
  }
}

/** @returns the number of living workers */
async function look(settings: UpkeepSettings, signal: AbortSignal): Promise<number> {
  const { redis, worker, outageGuard } = settings;
  const [living, [version, settled]] = await Promise.all([
    redis.zcard(registryKeys.workers),
    redis.mget(registryKeys.version, registryKeys.settled),
  ]);
  const isQuiet = version === settled || !outageGuard.silenceCounts(performance.now());
  if (isQuiet || !(await beginUpkeep(redis, worker, EVERY_MS))) return living;

  const unserved = await withStanding(settings, await readPins(redis));
  if (unserved.length === 0) {
    await redis.set(registryKeys.settled, version ?? "");
    return living;
  }
  // A retired pin's workers are known to have left, so retired pins come first. A forgotten pin may
  // only be missing from the registry, so it can wait.
  const standing = (["retired", "forgotten"] as const).find((one) => unserved.some((pin) => pin.standing === one));
  if (standing !== "retired") await redis.pexpire(registryKeys.upkeep, CALM_MS);
  if (standing === undefined) return living;
  await delay(DOUBT_MS[standing], signal);
  const looked = unserved.filter((one) => one.standing === standing).map(({ pin }) => pin);
  for (const one of await withStanding(settings, looked)) {
    if (!signal.aborted && one.standing === standing) await clear(settings, one, signal);
  }
  return living;
}

interface Unserved {
  readonly pin: ServedPin;
  readonly standing: Exclude<ReturnType<typeof standingOf>, "served">;
  readonly serving: Serving;
}

/** @returns the pins that no living worker serves */
async function withStanding(settings: UpkeepSettings, pins: readonly ServedPin[]): Promise<Unserved[]> {
  const serving = await readServing(settings);
  return pins.flatMap((pin) => {
    const standing = standingOf(pin, serving);
    return standing === "served" ? [] : { pin, standing, serving };
  });
}

async function readServing({ redis, clocks }: UpkeepSettings): Promise<Serving> {
  const members = await readMembers(redis, clocks.of(registryKeys.workers).toRedis(performance.now()));
  const names = [...new Set([...members.living, ...members.gone.keys()])];
  const texts = await readAnnouncements(redis, names);
  const of = (wanted: (name: string, members: Members) => boolean) =>
    names.flatMap((name, i) => (wanted(name, members) ? announcedModels(texts[i]) : []));
  return {
    living: of((name, { gone }) => !gone.has(name)),
    missed: of((name, { gone, left }) => gone.has(name) && !left.has(name)),
    left: of((name, { left }) => left.has(name)),
  };
}

/** Ends the requests for a pin, and forgets the pin once no more requests can come. */
async function clear(settings: UpkeepSettings, { pin, standing, serving }: Unserved, signal: AbortSignal) {
  const { redis, bus, worker, buckets, log } = settings;
  const { model, version, streams, maxIdleMs } = pin;
  const queues = lanesOf({ ...pin, buckets }).map((lane) => inLane({ redis, consumer: worker, streams }, lane));
  const filled = await Promise.all(queues.map(({ lane }) => hasWork(redis, lane)));
  let ended = 0;
  for (const queue of queues.filter((_, bucket) => filled[bucket])) {
    ended += await clearLane({ queue, bus, maxIdleMs, hasHeir: hasHeir(pin, serving) }, signal);
  }
  if (ended > 0) log.warn({ model, version, ended }, "requests for a version that nobody serves any more were ended");
  if (standing !== "forgotten" || signal.aborted) return;
  const isServed = serving.living.some(({ name }) => name === model);
  if (!isServed && maxIdleMs !== undefined && (await hasSequences(queues, maxIdleMs, signal))) return;
  const removed = await Promise.all(queues.map(({ lane }) => removeLane(redis, lane)));
  if (!removed.every((said) => said === "removed")) return;
  await forgetPin(redis, pin);
  // A worker that serves the pin again announces the pin before noting it. So the announcement
  // shows here, even if `forgetPin` has removed the note.
  if (standingOf(pin, await readServing(settings)) === "served") await notePins(redis, [pin]);
  else log.info({ model, version }, "a version that nobody serves any more is forgotten");
}

/** Whether requests wait in a lane, or run. */
export async function hasWork(redis: RedisClient, lane: Lane): Promise<boolean> {
  const { ready, queue } = laneKeys(lane);
  return (await redis.xlen(ready)) + (await redis.exists(queue)) > 0;
}

/** Removes sequences that have been idle for too long. @returns whether any is left */
async function hasSequences(queues: readonly LaneQueue[], idleMs: number, signal: AbortSignal): Promise<boolean> {
  let left = 0;
  for (const queue of queues) {
    while (!signal.aborted && (await reapIdle(queue, REAP_LIMIT, idleMs)) === REAP_LIMIT);
    left += await queue.redis.zcard(laneKeys(queue.lane).live);
  }
  return left > 0;
}
