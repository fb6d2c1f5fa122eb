/** The typed wrapper of keep-file.lua: finishes a file, which is whole and visible from now on. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text, word } from "../../redis/script.js";
import { fileKeys } from "../keys.js";
import type { FileAddress } from "./reserve-file.js";

export const filePurposes = ["batch", "batch_output"] as const;
export type FilePurpose = (typeof filePurposes)[number];

export interface KeptFile {
  /** Redis ms. */
  readonly createdAt: number;
  /** Redis ms; undefined for a file that lives until a client deletes it. */
  readonly expiresAt: number | undefined;
}

const script = defineScript(
  new URL("./keep-file.lua", import.meta.url),
  (reply): KeptFile | undefined => {
    const [said, created, expires] = list(reply);
    if (word(said, ["kept", "gone"]) === "gone") return undefined;
    return { createdAt: integer(created), expiresAt: text(expires) === "" ? undefined : integer(expires) };
  },
  {
    keys: ["file", "all", "due"],
    args: ["tenant", "id", "name", "purpose", "ttl"],
    durable: true,
  },
);

/**
 * @param ttlMs undefined to keep the file until a client deletes it
 * @returns undefined if the file is not in the state `writing` any more
 */
export function keepFile(
  redis: RedisClient,
  { tenant, id }: FileAddress,
  {
    name,
    purpose,
    ttlMs,
  }: { readonly name: string; readonly purpose: FilePurpose; readonly ttlMs: number | undefined },
): Promise<KeptFile | undefined> {
  const keys = { file: fileKeys.file(tenant, id), all: fileKeys.all(tenant), due: fileKeys.due };
  return script(redis, keys, { tenant, id, name, purpose, ttl: ttlMs ?? "" });
}
