/** The typed wrapper of keep-file.lua: a file is whole, and can be seen. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text, word } from "../../redis/script.js";
import { fileKeys } from "../keys.js";
import type { FileAddress } from "./reserve-file.js";

export const filePurposes = ["batch", "batch_output"] as const;
export type FilePurpose = (typeof filePurposes)[number];

export interface KeptFile {
  /** Redis ms. */
  readonly createdAt: number;
  /** Redis ms; undefined where it is kept until it is deleted. */
  readonly expiresAt: number | undefined;
}

const script = defineScript(
  new URL("./keep-file.lua", import.meta.url),
  (reply): KeptFile | undefined => {
    const [said, created, expires] = list(reply);
    if (word(said, ["kept", "gone"]) === "gone") return undefined;
    return { createdAt: integer(created), expiresAt: text(expires) === "" ? undefined : integer(expires) };
  },
  { durable: true },
);

/**
 * @param ttlMs undefined to keep it until it is deleted
 * @returns undefined where the file is not being written any more
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
  const keys = [fileKeys.file(tenant, id), fileKeys.all(tenant), fileKeys.due];
  return script(redis, keys, [tenant, id, name, purpose, ttlMs ?? ""]);
}
