/** The typed wrapper of note-wish.lua: a client wants a model to be loaded or unloaded. */
import { registryKeys } from "../keys.js";
import { wishText, type ModelWish } from "../wish.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer } from "../../redis/script.js";

const script = defineScript(new URL("./note-wish.lua", import.meta.url), integer, {
  keys: ["wish"],
  args: ["model", "wish", "id"],
  durable: true,
});

/**
 * @param id of the wish; a repeated call has the same
 * @returns the number of the change
 */
export function noteWish(redis: RedisClient, model: string, wish: ModelWish, id: string): Promise<number> {
  return script(redis, registryKeys, { model, wish: wishText(wish), id });
}
