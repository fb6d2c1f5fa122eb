/** The typed wrapper of drop-file.lua: hides a file from clients. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { fileKeys } from "../keys.js";
import type { FileAddress } from "./reserve-file.js";

/**
 * Ms. The process that drops a file removes its bytes; upkeep does so if the bytes remain after
 * this.
 */
const UPKEEP_MS = 30_000;

const script = defineScript(
  new URL("./drop-file.lua", import.meta.url),
  (reply) => word(reply, ["dropped", "in_use", "unknown"]),
  {
    keys: ["file", "all", "users", "due"],
    args: ["tenant", "id", "upkeepMs"],
    durable: true,
  },
);

export function dropFile(redis: RedisClient, { tenant, id }: FileAddress): Promise<"dropped" | "in_use" | "unknown"> {
  const { file, all, users, due } = fileKeys;
  const keys = { file: file(tenant, id), all: all(tenant), users: users(tenant, id), due };
  return script(redis, keys, { tenant, id, upkeepMs: UPKEEP_MS });
}
