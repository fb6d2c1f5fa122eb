/** The typed wrapper of use-file.lua: begins, renews or ends a user's use of a file. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { fileKeys } from "../keys.js";
import type { FileAddress } from "./reserve-file.js";

const script = defineScript(new URL("./use-file.lua", import.meta.url), (reply) => word(reply, ["noted", "unknown"]), {
  keys: ["file", "users"],
  args: ["user", "forMs"],
  durable: true,
});

/**
 * @param user of which a file may have many
 * @param forMs how long the use lasts at most; 0 to end the use
 */
export function useFile(
  redis: RedisClient,
  { tenant, id }: FileAddress,
  user: string,
  forMs: number,
): Promise<"noted" | "unknown"> {
  const keys = { file: fileKeys.file(tenant, id), users: fileKeys.users(tenant, id) };
  return script(redis, keys, { user, forMs });
}
