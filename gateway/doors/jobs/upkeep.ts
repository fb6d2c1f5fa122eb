/**
 * Upkeep that one jobs process at a time makes for all. Workers look after the sequences that they
 * serve, and each key has a TTL. The rest is the work of this process:
 *
 * - It ends idle sequences of models that no living worker serves, and notes events for webhooks.
 * - It ends jobs that no worker has begun in time, because the gateway that should do so may be
 *   dead.
 * - It removes jobs without a record from the indexes of their tenants. It ends jobs whose requests
 *   an earlier version of Baton has ended, because that version knows no jobs.
 * - It forgets requests that were set aside, when their time is over.
 * - It counts the ended jobs of models that are gone under one name.
 *
 * A round is short: it makes a bounded number of calls, each call looks at a bounded number of
 * entries, and the next round continues at that place. A process may do all of it twice, and two
 * processes may do so at a time.
 */
import type { Logger } from "pino";
import type { RequestAddress } from "#shared/queue/address.js";
import { tidyDeadRequests } from "#shared/queue/dead/tidy.js";
import { foldEnds } from "#shared/queue/jobs/fold-ends.js";
import { tidyJobs } from "#shared/queue/jobs/tidy.js";
import { jobTenantsKey, registryKeys } from "#shared/queue/keys.js";
import { readPins, type ServedPin } from "#shared/queue/pins.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";

export interface UpkeepSettings {
  readonly redis: RedisClient;
  readonly buckets: number;
  /** The name of this process among its replicas. */
  readonly name: string;
  /** The names of the models that living workers serve. */
  readonly served: () => ReadonlySet<string>;
  /** Looks at a job, and so ends the job if no worker has begun it in time. */
  readonly look: (job: RequestAddress) => Promise<void>;
  readonly log: Logger;
  /** Interval of the rounds, in ms. */
  readonly everyMs?: number;
  /** Interval of all upkeep but that of idle sequences, in ms. */
  readonly tidyEveryMs?: number;
}

const EVERY_MS = 5_000;
const TIDY_EVERY_MS = 60_000;
/** The process of the last round also makes the next round, unless it misses this many rounds. */
const LEASE_ROUNDS = 3;
/** Most calls of a round. */
const CALLS = 50;
/** Most entries that one call looks at. */
const LOOKED = 200;
/** Overdue jobs that the process looks at concurrently. */
const LOOKS_AT_ONCE = 16;

/** Yields after each call whether the round is over. */
type Steps = AsyncGenerator<boolean, void>;

/** Takes part in the rounds until `signal` aborts. */
export async function lookAfterAll(settings: UpkeepSettings, signal: AbortSignal): Promise<void> {
  const { redis, log, everyMs = EVERY_MS } = settings;
  let work = walk(settings);
  while (!signal.aborted) {
    await delay(everyMs * (0.8 + Math.random() * 0.4), signal);
    if (signal.aborted || redis.status !== "ready") continue;
    try {
      if (!(await isElected(settings, LEASE_ROUNDS * everyMs))) continue;
      for (let calls = 0; calls < CALLS && !signal.aborted; calls++) {
        const { value: isOver } = await work.next();
        if (isOver === true) break;
      }
    } catch (error) {
      work = walk(settings);
      log.debug({ error: String(error) }, "the upkeep stopped; the next round begins anew");
    }
  }
}

/**
 * Elects the process that makes the rounds as long as it lives. Two processes may do so for a
 * moment, which does no harm.
 */
async function isElected({ redis, name }: UpkeepSettings, leaseMs: number): Promise<boolean> {
  const key = registryKeys.tidying;
  if ((await redis.set(key, name, "PX", leaseMs, "NX")) !== null) return true;
  if ((await redis.get(key)) !== name) return false;
  await redis.pexpire(key, leaseMs);
  return true;
}

/** Never ends. */
async function* walk(settings: UpkeepSettings): Steps {
  const { redis, tidyEveryMs = TIDY_EVERY_MS } = settings;
  for (let tidyAt = -Infinity; ;) {
    const pins = await readPins(redis);
    yield* reapAll(settings, pins);
    if (performance.now() >= tidyAt) {
      tidyAt = performance.now() + tidyEveryMs;
      yield* tidyAll(settings, pins);
    }
    yield true;
  }
}

async function* reapAll(settings: UpkeepSettings, pins: readonly ServedPin[]): Steps {
  const { redis, buckets, served } = settings;
  for (const { model, maxIdleMs } of idleModels(pins, served())) {
    for (let bucket = 0; bucket < buckets; bucket++) {
      yield* unlessAway(settings, async function* () {
        let looked;
        do {
          looked = await reapIdle({ redis, lane: { bucket, model } }, LOOKED, maxIdleMs);
          yield false;
        } while (looked === LOOKED);
      });
    }
  }
}

async function* tidyAll(settings: UpkeepSettings, pins: readonly ServedPin[]): Steps {
  const { redis, buckets, served } = settings;
  const models = [...new Set(pins.map(({ model }) => model))];
  const known = new Set([...models, ...served()]);
  for (let bucket = 0; bucket < buckets; bucket++) {
    yield* unlessAway(settings, async function* () {
      await tidyDeadRequests(redis, bucket, models);
      yield false;
      // Outside of a Cluster all buckets have the same counts.
      if (redis.isCluster || bucket === 0) await foldEnds(redis, bucket, known);
      yield false;
      let cursor = "0";
      do {
        const [next, tenants] = await redis.sscan(jobTenantsKey(bucket), cursor, "COUNT", LOOKED);
        yield false;
        for (const tenant of tenants) yield* walkJobs(settings, bucket, tenant);
        cursor = next;
      } while (cursor !== "0");
    });
  }
}

/**
 * Ends the round if a bucket of a Cluster has no master. The next round continues with another
 * bucket.
 */
async function* unlessAway({ log }: UpkeepSettings, steps: () => Steps): Steps {
  try {
    yield* steps();
  } catch (error) {
    log.debug({ error: String(error) }, "a bucket cannot be looked after now");
    yield true;
  }
}

async function* walkJobs({ redis, look, log }: UpkeepSettings, bucket: number, tenant: string): Steps {
  for (let from: number | undefined = 0; from !== undefined;) {
    const { next, overdue } = await tidyJobs(redis, bucket, tenant, from, LOOKED);
    yield false;
    for (let i = 0; i < overdue.length; i += LOOKS_AT_ONCE) {
      const looks = await Promise.allSettled(overdue.slice(i, i + LOOKS_AT_ONCE).map(look));
      const failed = looks.find((one) => one.status === "rejected");
      if (failed !== undefined) log.debug({ error: String(failed.reason) }, "an overdue job could not be ended now");
      yield false;
    }
    from = next;
  }
}

/** A model whose sequences no worker looks after. */
export interface IdleModel {
  readonly model: string;
  /** How long a sequence may be idle; undefined if the versions of the model differ. */
  readonly maxIdleMs: number | undefined;
}

/**
 * Finds the models with sequences that no living worker serves. Workers look after all other
 * models.
 */
export function idleModels(pins: readonly ServedPin[], served: ReadonlySet<string>): IdleModel[] {
  const found = new Map<string, number | undefined>();
  for (const { model, maxIdleMs } of pins) {
    if (maxIdleMs === undefined || served.has(model)) continue;
    found.set(model, !found.has(model) || found.get(model) === maxIdleMs ? maxIdleMs : undefined);
  }
  return [...found].map(([model, maxIdleMs]) => ({ model, maxIdleMs }));
}
