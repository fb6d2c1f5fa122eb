/**
 * Moves the states of sequences that have been idle for long to disk, model by model and bucket by
 * bucket. The workers of a model take turns. If two workers move the same state, one file is
 * surplus, and unused-files.ts removes that file.
 */
import type { Logger } from "pino";
import { decodeFrame } from "#shared/frame.js";
import { hibernationKeys, liveKey, versionKey } from "#shared/queue/keys.js";
import { checkpoint } from "#shared/records/sequence.js";
import { readLive, type LiveSequence } from "#shared/queue/pieces/live.js";
import type { SequenceFacts } from "#shared/queue/pieces/sequence.js";
import { beginHibernation } from "#shared/queue/work/upkeep/begin-round.js";
import { hibernate, type Sleeping } from "#shared/queue/work/upkeep/hibernate.js";
import { timeAt } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { isPointer, type SleepingStates } from "#shared/sleeping-states.js";
import { removeUnused, type Unused } from "./unused-files.js";

export interface Hibernation {
  readonly redis: RedisClient;
  readonly worker: string;
  readonly buckets: number;
  /** The models with sequences that this worker serves. */
  readonly models: readonly { readonly model: string; readonly maxIdleMs: number }[];
  /** How long a sequence has been idle when its state goes to disk, in ms. */
  readonly afterMs: number;
  readonly states: SleepingStates;
  readonly log: Logger;
}

/** The longest pause between two rounds, in ms. */
const EVERY_MS = 5_000;
/**
 * Sequences of a bucket that one round looks at. If there are more, the next page follows at once.
 */
const PAGE = 1_000;
/** States that the worker reads and writes at a time. */
const AT_ONCE = 8;
/** Time between searches of one worker for files without a pointer, in ms. */
const UNUSED_EVERY_MS = 600_000;

/** Moves states until `signal` aborts. */
export async function hibernateWhileOpen(hibernation: Hibernation, signal: AbortSignal): Promise<void> {
  const { redis, worker, buckets, models, afterMs, states, log } = hibernation;
  const everyMs = Math.max(50, Math.min(EVERY_MS, afterMs / 2));
  const unused: Unused = new Map();
  let looked = performance.now();
  while (!signal.aborted) {
    await delay(everyMs * (0.8 + Math.random() * 0.4), signal);
    if (signal.aborted || redis.status !== "ready") continue;
    try {
      await states.prepare();
      for (const { model, maxIdleMs } of models) {
        for (let bucket = 0; bucket < buckets && !signal.aborted; bucket++) {
          if (!(await beginHibernation(redis, { bucket, model }, worker, everyMs))) continue;
          while (!signal.aborted && (await bringToDisk(hibernation, { bucket, model }, maxIdleMs)));
        }
      }
      if (performance.now() - looked < UNUSED_EVERY_MS) continue;
      looked = performance.now();
      await removeUnused({ redis, states, unused, log }, signal);
    } catch (error) {
      log.warn({ error: String(error) }, "states of idle sequences could not be brought to disk; tried again");
    }
  }
}

/**
 * Moves the states of up to `PAGE` sequences that have been idle for long enough. Begins at the end
 * of the last round.
 *
 * @param maxIdleMs how long the model's sequences may be idle before they expire
 * @returns whether there may be more
 * @throws the first error that kept a state from moving, after all others have moved
 */
export async function bringToDisk(
  { redis, afterMs, states, log }: Pick<Hibernation, "redis" | "afterMs" | "states" | "log">,
  where: { readonly bucket: number; readonly model: string },
  maxIdleMs: number,
): Promise<boolean> {
  const now = await timeAt(redis, liveKey(where));
  // A sequence that has been idle for `afterMs` expires by `until`, because it came to rest
  // `maxIdleMs` before it expires. The index may name an earlier time of one that has lived on.
  const until = Math.floor(now + maxIdleMs - afterMs);
  const reached = Number((await redis.get(hibernationKeys(where).reached)) ?? 0);
  if (until <= now || until <= reached) return false;
  const page = await readLive(redis, where, { from: reached, until, most: PAGE });
  const isActive = ({ facts }: LiveSequence) => facts !== undefined && (facts.entry !== "" || facts.lapses > until);
  const active = page.filter(isActive).map(({ name }) => name);
  const keys = page
    .filter((one) => !isActive(one) && (one.facts?.lapses ?? 0) > now)
    .flatMap(({ name, facts }) => versionsOf(facts).map((version) => versionKey(where, name, version)));
  const sleeping: Sleeping[] = [];
  const failures: unknown[] = [];
  for (let i = 0; i < keys.length && failures.length === 0; i += AT_ONCE) {
    const some = await Promise.allSettled(keys.slice(i, i + AT_ONCE).map((key) => write({ redis, states, log }, key)));
    for (const one of some) {
      if (one.status === "rejected") failures.push(one.reason);
      else if (one.value !== undefined) sleeping.push(one.value);
    }
  }
  const isFull = page.length === PAGE;
  // After a full disk or a loss of Redis, the whole files still count. The next round returns to
  // the states that failed.
  const end = isFull ? endOf(page) : until;
  const count = await hibernate(redis, where, sleeping, active, failures.length === 0 ? end : reached);
  if (count > 0) log.debug({ ...where, count }, "states of idle sequences brought to disk");
  if (failures.length > 0) throw failures[0];
  return isFull;
}

/**
 * The start of the page after a full page. The last sequence may share its time with sequences that
 * the page left out, so the next page begins with that same time. If all sequences of the page have
 * one time, the next page begins after it, and the sequences left out stay in Redis.
 */
function endOf(page: readonly LiveSequence[]): number {
  const last = page.at(-1)?.at ?? 0;
  return page[0]?.at === last ? last + 1 : last;
}

/**
 * Writes one checkpoint to disk.
 * @returns undefined if there is nothing to move. A checkpoint that cannot be read stays in Redis,
 * and the sequence's next step gets an error.
 */
async function write(
  { redis, states, log }: Pick<Hibernation, "redis" | "states" | "log">,
  key: string,
): Promise<Sleeping | undefined> {
  const frame = await redis.getBuffer(key);
  if (frame === null || isPointer(frame)) return undefined;
  try {
    decodeFrame(frame);
  } catch (error) {
    log.error({ key, error: String(error) }, "the state of an idle sequence cannot be read; it stays in Redis");
    return undefined;
  }
  return { key, pointer: await states.write(key, frame) };
}

/** The versions of an idle sequence. */
function versionsOf(facts: SequenceFacts | undefined): string[] {
  if (facts === undefined || facts.at === "" || facts.at === "!") return [];
  return [...new Set([facts.at, ...facts.kept.flatMap((item) => checkpoint.read(item)?.version ?? [])])];
}
