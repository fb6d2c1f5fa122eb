/** The typed wrapper of mend-turn.lua: gives a model its turn, if the turn is missing or lost. */
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, word } from "../../../redis/script.js";
import { GROUP } from "../../keys.js";
import { reapConsumers } from "../../reap-consumers.js";
import type { LanesByKey } from "../stream.js";

const answers = ["new", "unread", "kept"] as const;

const script = defineScript(new URL("./mend-turn.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["turn", { ready: [] }],
  args: ["group", "lostMs", "unreadMs"],
});

/** A worker that renews its turn more often than this never loses it, in ms. */
const LOST_MS = 3_000;
/** The holder of the turn reads a request much sooner than this, in ms. */
const UNREAD_MS = 1_000;
/** Longer than a worker waits for its turn without another read, in ms. */
const CONSUMER_IDLE_MS = 600_000;

/**
 * Forgets workers that are gone, too, if there is a new turn.
 * @param lanes that the holder of the turn reads
 */
export async function mendTurn(redis: RedisClient, turn: string, lanes: LanesByKey): Promise<(typeof answers)[number]> {
  const args = { group: GROUP, lostMs: LOST_MS, unreadMs: UNREAD_MS };
  const said = await script(redis, { turn, ready: [...lanes.keys()] }, args);
  if (said === "new") await reapConsumers(redis, turn, GROUP, CONSUMER_IDLE_MS);
  return said;
}
