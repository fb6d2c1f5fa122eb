/** The typed wrapper of reserve-file.lua: begins a file, and counts its bytes so far. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { fileKeys } from "../keys.js";

export interface FileAddress {
  readonly tenant: string;
  readonly id: string;
}

export interface FileLimits {
  readonly tenantBytes: number;
  readonly allBytes: number;
  readonly tenantFiles: number;
  readonly allFiles: number;
}

const said = ["reserved", "tenant_bytes", "all_bytes", "tenant_files", "all_files", "gone"] as const;
export type Reserved = (typeof said)[number];

const script = defineScript(new URL("./reserve-file.lua", import.meta.url), (reply) => word(reply, said), {
  keys: ["file", "sums", "due"],
  args: ["tenant", "id", "bytes", "leaseMs", "tenantBytes", "allBytes", "tenantFiles", "allFiles"],
});

/**
 * @param bytes of the file so far; the caller is about to write the newest of these
 * @param leaseMs after this long without a further call the writer counts as lost
 */
export function reserveFile(
  redis: RedisClient,
  { tenant, id }: FileAddress,
  { bytes, leaseMs, isNew }: { readonly bytes: number; readonly leaseMs: number; readonly isNew: boolean },
  limits: FileLimits,
): Promise<Reserved> {
  const keys = { file: fileKeys.file(tenant, id), sums: fileKeys.sums, due: fileKeys.due };
  const tenantFiles = isNew ? limits.tenantFiles : "";
  return script(redis, keys, { tenant, id, bytes, leaseMs, ...limits, tenantFiles });
}
