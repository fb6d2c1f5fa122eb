/**
 * What one jobs process at a time does for all, and nobody else: workers look after what they
 * serve, and each key has a TTL, but some things are seen by neither.
 *
 * - Sequences of models that no living worker serves idle out, and webhooks that want it are told.
 * - Jobs that nobody has begun in time are ended, although the gateway is gone that was to do so.
 * - Jobs that are gone are taken out of the indexes of their tenants, and those are ended whose
 *   requests were ended by an earlier version of Baton, which knows no jobs.
 * - Requests that were set aside are forgotten when it is time.
 *
 * A round is short: it makes a bounded number of calls, each of which looks at a bounded number of
 * things, and the next one goes on where it stopped. All of it may be done twice, or by two at a
 * time.
 */
import type { Logger } from "pino";
import type { RequestAddress } from "#shared/queue/address.js";
import { tidyDeadRequests } from "#shared/queue/dead/tidy.js";
import { tidyJobs } from "#shared/queue/jobs/tidy.js";
import { jobTenantsKey, registryKeys } from "#shared/queue/keys.js";
import { readPins, type ServedPin } from "#shared/queue/pins.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";

export interface UpkeepSettings {
  readonly redis: RedisClient;
  readonly buckets: number;
  /** This process among its replicas. */
  readonly name: string;
  /** The names of the models that living workers serve. */
  readonly served: () => ReadonlySet<string>;
  /** Looks at a job, which ends it if it was to be begun by now and was not. */
  readonly look: (job: RequestAddress) => Promise<void>;
  readonly log: Logger;
  /** Between two rounds, in ms. */
  readonly everyMs?: number;
  /** Between two times that it begins to look for all but idle sequences, in ms. */
  readonly tidyEveryMs?: number;
}

const EVERY_MS = 5_000;
const TIDY_EVERY_MS = 60_000;
/** The process that has made a round makes the next one, too, unless it is away for so many. */
const LEASE_ROUNDS = 3;
/** Calls of a round. */
const CALLS = 50;
/** What one call looks at. */
const LOOKED = 200;
/** Jobs that are looked at side by side, since they are overdue. */
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
 * One process makes the rounds as long as it lives. Two may do so for a moment: no harm is done.
 */
async function isElected({ redis, name }: UpkeepSettings, leaseMs: number): Promise<boolean> {
  const key = registryKeys.tidying;
  if ((await redis.set(key, name, "PX", leaseMs, "NX")) !== null) return true;
  if ((await redis.get(key)) !== name) return false;
  await redis.pexpire(key, leaseMs);
  return true;
}

/** Ends never. */
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
  const { redis, buckets } = settings;
  const models = [...new Set(pins.map(({ model }) => model))];
  for (let bucket = 0; bucket < buckets; bucket++) {
    yield* unlessAway(settings, async function* () {
      await tidyDeadRequests(redis, bucket, models);
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

/** A bucket of a Cluster whose master is away ends the round; the next one goes on with another. */
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

/** A model whose sequences nobody else looks after. */
export interface IdleModel {
  readonly model: string;
  /** How long its sequences are kept; undefined where its versions differ. */
  readonly maxIdleMs: number | undefined;
}

/** Which models with sequences no living worker serves; the workers look after the others. */
export function idleModels(pins: readonly ServedPin[], served: ReadonlySet<string>): IdleModel[] {
  const found = new Map<string, number | undefined>();
  for (const { model, maxIdleMs } of pins) {
    if (maxIdleMs === undefined || served.has(model)) continue;
    found.set(model, !found.has(model) || found.get(model) === maxIdleMs ? maxIdleMs : undefined);
  }
  return [...found].map(([model, maxIdleMs]) => ({ model, maxIdleMs }));
}
