/** The typed wrapper of take-back-wish.lua: takes back a wish that no worker could fulfil. */
import { registryKeys } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer } from "../../redis/script.js";
import type { NotedWish } from "./note-wish.js";

const script = defineScript(new URL("./take-back-wish.lua", import.meta.url), (reply) => integer(reply) === 1, {
  keys: ["wish"],
  args: ["model", "number", "before"],
});

/** @returns false if a client has wished something else of the model since */
export function takeBackWish(redis: RedisClient, model: string, { number, before }: NotedWish): Promise<boolean> {
  return script(redis, registryKeys, { model, number, before });
}
