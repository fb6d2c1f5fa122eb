/** The typed wrapper of settle-wish.lua: notes a fulfilled wish, or takes back another. */
import { registryKeys } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer } from "../../redis/script.js";

const script = defineScript(new URL("./settle-wish.lua", import.meta.url), (reply) => integer(reply) === 1, {
  keys: ["wish"],
  args: ["model", "number", "isFulfilled"],
  durable: true,
});

export interface SettledWish {
  readonly model: string;
  /** The number of the change. */
  readonly number: number;
  readonly isFulfilled: boolean;
}

/** @returns false if a client has wished something else of the model since */
export function settleWish(redis: RedisClient, { model, number, isFulfilled }: SettledWish): Promise<boolean> {
  return script(redis, registryKeys, { model, number, isFulfilled: isFulfilled ? "1" : "" });
}
