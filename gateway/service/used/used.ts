/** What a caller and its tenant have used of the things that limits count. */
import type { OwnerLimit } from "#shared/queue/admission/limits.js";
import { readUsed } from "#shared/queue/admission/read-used.js";
import { countOpenBatches } from "#shared/queue/batches/batches.js";
import { readSums } from "#shared/queue/files/files.js";
import { countHeld } from "#shared/queue/pieces/held.js";
import type { RateStanding } from "#shared/queue/pieces/rates.js";
import { countSchedules } from "#shared/queue/schedules/schedules.js";
import { countWebhooks } from "#shared/queue/webhooks/webhooks.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis } from "../../admission/ask-redis.js";
import type { Budget } from "../../admission/budget.js";

export interface UsedPlace {
  readonly redis: RedisClient;
  readonly buckets: number;
  /** Counts the readers at this gateway; absent if nobody counts. */
  readonly readers?: { of(name: string): number } | undefined;
}

/** A caller, or a tenant as such. */
export interface UsedCaller {
  readonly tenant: string;
  readonly budget: Budget | undefined;
}

/** How a rate stands. */
interface Standing {
  readonly remaining: number;
  /** ms until all is there again. */
  readonly reset: number;
}

/** Absent: the caller has no limit of this name, so that nothing counts for it. */
export interface Used {
  /** Of key and tenant the one of which less is left, here and below. */
  readonly requests?: Standing | undefined;
  readonly tokens?: Standing | undefined;
  readonly concurrent_streams?: number | undefined;
  /** At this gateway. */
  readonly open_readers?: number | undefined;
  readonly queued_requests: number;
  readonly queued_bytes: number;
  readonly live_sequences: number;
  /** Jobs that wait for their time, or for another attempt. */
  readonly jobs: number;
  readonly schedules: number;
  readonly webhooks: number;
  /** Batches that have not ended. */
  readonly batches: number;
  readonly files: number;
  readonly file_bytes: number;
}

const NO_FILES = { files: 0, bytes: 0, allBytes: 0 };
/** A look takes no tokens. */
const NO_CHARGE = { cost: 0, prompt: 0, choices: 0 };

/**
 * @param only the limits that the caller of this function wants; absent: all. Others are 0
 * @throws InferenceError `unavailable`
 */
export function usedBy(
  { redis, buckets, readers: open }: UsedPlace,
  { tenant, budget }: UsedCaller,
  only?: ReadonlySet<string>,
): Promise<Used> {
  const count = <Counted>(limits: readonly string[], read: () => Promise<Counted>, none: Counted) =>
    only === undefined || limits.some((limit) => only.has(limit)) ? read() : none;
  const { rates = [], tokens = [], generations = [], readers = [] } = budget ?? {};
  const terms = {
    rates: [...rates, ...tokens.map((rate) => ({ ...rate, charge: NO_CHARGE }))],
    fields: [`t:${tenant}`, `l:${tenant}`, ...generations.map(({ name }) => `g:${name}`)],
  };
  return askRedis(async () => {
    const [{ standings, loads }, sequences, schedules, webhooks, batches, files] = await Promise.all([
      readUsed(redis, buckets, terms),
      count(["live_sequences"], () => countHeld(redis, buckets, tenant), 0),
      count(["schedules"], () => countSchedules(redis, tenant), 0),
      count(["webhooks"], () => countWebhooks(redis, tenant), 0),
      count(["batches"], () => countOpenBatches(redis, tenant), 0),
      count(["files", "file_bytes"], () => readSums(redis, tenant), NO_FILES),
    ]);
    const [queued, later, ...running] = loads;
    return {
      requests: tightest(standings.slice(0, rates.length)),
      tokens: tightest(standings.slice(rates.length)),
      concurrent_streams: fullest(generations, (_, i) => running[i]?.requests),
      open_readers: fullest(readers, ({ name }) => open?.of(name)),
      queued_requests: queued?.requests ?? 0,
      queued_bytes: queued?.bytes ?? 0,
      live_sequences: sequences,
      jobs: later?.requests ?? 0,
      schedules,
      webhooks,
      batches,
      files: files.files,
      file_bytes: files.bytes,
    };
  });
}

/** @returns undefined if there is no rate */
function tightest(standings: readonly RateStanding[]): Standing | undefined {
  const [least] = standings.toSorted((a, b) => a.remaining - b.remaining);
  return least && { remaining: least.remaining, reset: Math.ceil(least.resetUs / 1_000) };
}

/** @returns how many things the owner has of which the least is left; undefined without a limit */
function fullest(
  limits: readonly OwnerLimit[],
  countOf: (limit: OwnerLimit, i: number) => number | undefined,
): number | undefined {
  const counted = limits.map((limit, i) => {
    const count = countOf(limit, i) ?? 0;
    return { count, left: limit.most - count };
  });
  return counted.toSorted((a, b) => a.left - b.left)[0]?.count;
}
