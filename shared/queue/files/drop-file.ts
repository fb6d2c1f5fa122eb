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
  { durable: true },
);

export function dropFile(redis: RedisClient, { tenant, id }: FileAddress): Promise<"dropped" | "in_use" | "unknown"> {
  const { file, all, users, due } = fileKeys;
  return script(redis, [file(tenant, id), all(tenant), users(tenant, id), due], [tenant, id, UPKEEP_MS]);
}
