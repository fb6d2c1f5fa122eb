/** The typed wrapper of drop-file.lua: nobody sees the file any more. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { fileKeys } from "../keys.js";
import type { FileAddress } from "./reserve-file.js";

/**
 * The process that drops a file removes its bytes; upkeep does so if that has not happened by then.
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
