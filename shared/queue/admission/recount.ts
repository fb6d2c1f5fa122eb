/** The typed wrapper of recount.lua: repairs the counts of the queue. */
import { setTimeout as pause } from "node:timers/promises";
import { loadTurnKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";

const script = defineScript(
  new URL("./recount.lua", import.meta.url),
  (reply) => {
    const [cursor, mended] = list(reply);
    return { cursor: text(cursor), mended: integer(mended) };
  },
  {
    keys: ["load", "turn"],
    args: ["cursor", "page", "everyMs"],
  },
);

/** Requests of a call, about. Redis's only thread is busy with them for less than 1 ms. */
const PAGE = 500;
/** The pause after each call, in which Redis serves other clients, in ms. */
const PAUSE_MS = 5;

/**
 * Makes a round, unless a process has begun a round less than `everyMs` ago.
 * @param load from `loadKey`
 * @returns how many requests and sums were wrong
 */
export async function recount(redis: RedisClient, load: string, everyMs: number, signal: AbortSignal): Promise<number> {
  const keys = { load, turn: loadTurnKey(load) };
  let mended = 0;
  let cursor = "";
  do {
    if (cursor !== "") await pause(PAUSE_MS);
    const page = await script(redis, keys, { cursor, page: PAGE, everyMs });
    mended += page.mended;
    ({ cursor } = page);
  } while (cursor !== "0" && cursor !== "" && !signal.aborted);
  return mended;
}
