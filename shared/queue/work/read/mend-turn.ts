/** The typed wrapper of mend-turn.lua: gives a model its turn, if the turn is missing or lost. */
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, integer } from "../../../redis/script.js";
import { GROUP } from "../../keys.js";
import { reapConsumers } from "../../reap-consumers.js";

const script = defineScript(new URL("./mend-turn.lua", import.meta.url), integer, {
  keys: ["turn"],
  args: ["group", "lostMs"],
});

/** A worker that renews its turn more often than this never loses it, in ms. */
const LOST_MS = 3_000;
/** Longer than a worker waits for its turn without another read, in ms. */
const CONSUMER_IDLE_MS = 600_000;

/** Forgets workers that are gone, too, if there is a new turn. */
export async function mendTurn(redis: RedisClient, turn: string): Promise<void> {
  const isNew = await script(redis, { turn }, { group: GROUP, lostMs: LOST_MS });
  if (isNew === 1) await reapConsumers(redis, turn, GROUP, CONSUMER_IDLE_MS);
}
