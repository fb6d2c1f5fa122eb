/** The typed wrapper of forget-file.lua: forgets a dropped file whose bytes are gone. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript } from "../../redis/script.js";
import { fileKeys } from "../keys.js";
import type { FileAddress } from "./reserve-file.js";

const script = defineScript(new URL("./forget-file.lua", import.meta.url), () => undefined, {
  keys: ["file", "sums", "due", "users"],
  args: ["tenant", "id"],
});

export async function forgetFile(redis: RedisClient, { tenant, id }: FileAddress): Promise<void> {
  const { file, sums, due, users } = fileKeys;
  await script(redis, { file: file(tenant, id), sums, due, users: users(tenant, id) }, { tenant, id });
}
