/**
 * Removes the files of states that have woken, moved on or ended. A file is unused if the key of
 * its state does not point to the file. The worker removes a file after an hour of looks that all
 * found it unused, because a pointer may arrive late, and Redis may go back to an older pointer.
 * The worker also removes files that are still incomplete after an hour.
 */
import type { Logger } from "pino";
import type { RedisClient } from "#shared/redis/connect.js";
import { fileOf, type SleepingStates } from "#shared/sleeping-states.js";

/** The time since which every look has found a file unused, on `performance.now()`'s clock. */
export type Unused = Map<string, number>;

export interface Removal {
  readonly redis: RedisClient;
  readonly states: SleepingStates;
  readonly unused: Unused;
  readonly log: Logger;
}

const UNUSED_MS = 3_600_000;
/** In bytes; no pointer is longer. */
const POINTER_BYTES = 128;

/** @param graceMs how long a file must have been unused */
export async function removeUnused(
  { redis, states, unused, log }: Removal,
  signal: AbortSignal,
  graceMs = UNUSED_MS,
): Promise<void> {
  const there = new Set<string>();
  let removed = await states.removeDrafts(UNUSED_MS);
  for await (const name of states.files()) {
    if (signal.aborted) return;
    there.add(name);
    const key = await states.keyOf(name);
    if (key === undefined) continue;
    if (fileOf(await redis.getrange(key, 0, POINTER_BYTES)) === name) {
      unused.delete(name);
      continue;
    }
    const since = unused.get(name) ?? performance.now();
    unused.set(name, since);
    if (performance.now() - since < graceMs) continue;
    await states.remove(name);
    unused.delete(name);
    removed++;
  }
  for (const name of unused.keys()) if (!there.has(name)) unused.delete(name);
  if (removed > 0) log.info({ removed }, "files of states that sleep no more were removed");
}
