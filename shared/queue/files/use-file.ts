/** The typed wrapper of use-file.lua: somebody uses a file, or does no longer. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { fileKeys } from "../keys.js";
import type { FileAddress } from "./reserve-file.js";

const script = defineScript(new URL("./use-file.lua", import.meta.url), (reply) => word(reply, ["noted", "unknown"]), {
  durable: true,
});

/** @param user of which a file may have many */
export function useFile(
  redis: RedisClient,
  { tenant, id }: FileAddress,
  user: string,
  isUsed: boolean,
): Promise<"noted" | "unknown"> {
  return script(redis, [fileKeys.file(tenant, id), fileKeys.users(tenant, id)], [user, isUsed ? 1 : 0]);
}
