/** The typed wrapper of due-files.lua: takes files whose bytes upkeep has to remove. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text } from "../../redis/script.js";
import { fileKeys } from "../keys.js";
import type { FileAddress } from "./reserve-file.js";

const script = defineScript(new URL("./due-files.lua", import.meta.url), (reply) => list(reply).map(text), {
  keys: ["due"],
  args: ["most", "againMs"],
});

/** @param againMs after this time any process gets these files again, if they still exist */
export async function dueFiles(redis: RedisClient, most: number, againMs: number): Promise<FileAddress[]> {
  const names = await script(redis, { due: fileKeys.due }, { most, againMs });
  const files: FileAddress[] = [];
  for (let i = 0; i + 1 < names.length; i += 2) files.push({ tenant: names[i] ?? "", id: names[i + 1] ?? "" });
  return files;
}
