/** The typed wrapper of note-wish.lua: a client wants a model to be loaded or unloaded. */
import { registryKeys } from "../keys.js";
import { wishText, type ModelWish } from "../wish.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";

export interface NotedWish {
  readonly number: number;
  /** The field of the model before the change; empty if there was none. */
  readonly before: string;
}

const script = defineScript(
  new URL("./note-wish.lua", import.meta.url),
  (reply): NotedWish => {
    const [number, before] = list(reply);
    return { number: integer(number), before: text(before) };
  },
  { keys: ["wish"], args: ["model", "wish"], durable: true },
);

export function noteWish(redis: RedisClient, model: string, wish: ModelWish): Promise<NotedWish> {
  return script(redis, registryKeys, { model, wish: wishText(wish) });
}
