/** Keeps a lane's hand full of new steps: at most one batch waits here while one runs, so that no worker hoards what another could run. */
import type { Logger } from "pino";
import { dropIfSilent, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { isReplyError } from "#shared/redis/script.js";
import { delay } from "#shared/retry.js";
import type { LaneQueue } from "../queue/lane.js";
import { ensureGroup, readNew, readOwned, type Taken } from "../queue/stream.js";
import type { Hand } from "./hand.js";

export interface Reader {
  /** A connection for this reader alone. */
  readonly queue: LaneQueue;
  readonly hand: Hand;
  /** How many more steps may be read now. */
  readonly room: () => number;
  readonly accept: (taken: Taken) => void;
  /** For what was delivered to this worker before: it may have run here already. */
  readonly acceptOwned: (taken: Taken) => void;
  readonly log: Logger;
}

/** Redis answers a blocked read after this long at the latest; a drain waits for it. */
const BLOCK_MS = 200;
/** A link on which nothing comes for longer than a read may block is lost: a frozen peer sends no reset. A long answer on a slow one is not. */
const SILENCE_MS = BLOCK_MS + 1_500;
const OWNED_LIMIT = 1_000;

export async function readWhileOpen(
  { queue, hand, room, accept, acceptOwned, log }: Reader,
  signal: AbortSignal,
): Promise<void> {
  const { redis } = queue;
  // After a lost reply entries may be ours without our having seen them; the first read of every connection asks.
  let mayOwnUnseen = true;
  while (!signal.aborted) {
    const count = room();
    if (count <= 0) {
      await hand.taken.wait(performance.now() + BLOCK_MS);
      continue;
    }
    const watchdog = watchSilence(redis);
    try {
      if (redis.status !== "ready") await whenReady(redis, signal);
      if (mayOwnUnseen) {
        await ensureGroup(redis, queue.lane);
        acceptOwned(await readOwned(queue, OWNED_LIMIT));
        mayOwnUnseen = false;
        continue;
      }
      accept(await readNew(queue, count, BLOCK_MS));
    } catch (error) {
      if (signal.aborted) return;
      dropIfSilent(redis, error);
      if (!isReplyError(error, "NOGROUP")) log.debug({ error: String(error) }, "read failed");
      mayOwnUnseen = true;
      await delay(20, signal);
    } finally {
      clearInterval(watchdog);
    }
  }
}

/** Replaces the connection each time nothing has come over it: one that is being opened may fall silent like any other. */
function watchSilence(redis: RedisClient): NodeJS.Timeout {
  let { stream } = redis;
  let bytes = stream?.bytesRead;
  return setInterval(() => {
    const open = redis.status === "connect" || redis.status === "ready";
    if (open && redis.stream === stream && stream.bytesRead === bytes) redis.disconnect(true);
    ({ stream } = redis);
    bytes = stream?.bytesRead;
  }, SILENCE_MS);
}
