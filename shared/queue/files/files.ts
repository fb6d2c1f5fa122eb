/** Files, read with plain commands. reserve-file.lua has the fields. */
import { timeAt } from "../../redis/clock.js";
import type { RedisClient } from "../../redis/connect.js";
import { fileKeys } from "../keys.js";
import { filePurposes, type FilePurpose, type KeptFile } from "./keep-file.js";
import type { FileAddress } from "./reserve-file.js";

export interface StoredFile extends FileAddress, KeptFile {
  readonly bytes: number;
  readonly name: string;
  readonly purpose: FilePurpose;
}

/** @returns undefined if the tenant has no such file that is whole and has not expired */
export async function readFile(redis: RedisClient, { tenant, id }: FileAddress): Promise<StoredFile | undefined> {
  const key = fileKeys.file(tenant, id);
  const [fields, now] = await Promise.all([redis.hgetall(key), timeAt(redis, key)]);
  return unexpired(fileOf({ tenant, id }, fields), now);
}

/** The given files that exist and have not expired. */
export async function readFiles(redis: RedisClient, tenant: string, ids: readonly string[]): Promise<StoredFile[]> {
  if (ids.length === 0) return [];
  const now = await timeAt(redis, fileKeys.all(tenant));
  const read = async (id: string) => fileOf({ tenant, id }, await redis.hgetall(fileKeys.file(tenant, id)));
  const found = await Promise.all(ids.map(read));
  return found.map((file) => unexpired(file, now)).filter((file) => file !== undefined);
}

/** The same for a file in use, which does not expire meanwhile. */
export async function readUsedFile(redis: RedisClient, address: FileAddress): Promise<StoredFile | undefined> {
  return fileOf(address, await redis.hgetall(fileKeys.file(address.tenant, address.id)));
}

/**
 * Ids of the tenant's files, in the order of their creation.
 * @param from how many files to pass over
 */
export function listFiles(
  redis: RedisClient,
  tenant: string,
  { from, count, isNewestFirst }: { readonly from: number; readonly count: number; readonly isNewestFirst: boolean },
): Promise<string[]> {
  const key = fileKeys.all(tenant);
  const to = from + count - 1;
  return isNewestFirst ? redis.zrevrange(key, from, to) : redis.zrange(key, String(from), String(to));
}

/** How many files come before this file in that order; undefined if this file is unknown. */
export async function placeOfFile(
  redis: RedisClient,
  { tenant, id }: FileAddress,
  isNewestFirst: boolean,
): Promise<number | undefined> {
  const key = fileKeys.all(tenant);
  const place = isNewestFirst ? await redis.zrevrank(key, id) : await redis.zrank(key, id);
  return place ?? undefined;
}

/** What reserve-file.lua counts. */
export interface FileSums {
  /** Files of the tenant, those included that are being written. */
  readonly files: number;
  readonly bytes: number;
  /** Of the files of all tenants. */
  readonly allBytes: number;
}

export async function readSums(redis: RedisClient, tenant: string): Promise<FileSums> {
  const [files, bytes, allBytes] = await redis.hmget(fileKeys.sums, `files:${tenant}`, `bytes:${tenant}`, "bytes");
  return { files: Number(files ?? 0), bytes: Number(bytes ?? 0), allBytes: Number(allBytes ?? 0) };
}

function unexpired(file: StoredFile | undefined, now: number): StoredFile | undefined {
  return file?.expiresAt !== undefined && file.expiresAt <= now ? undefined : file;
}

function fileOf(address: FileAddress, fields: Readonly<Record<string, string>>): StoredFile | undefined {
  const { state, bytes, created, expires = "", name } = fields;
  const purpose = filePurposes.find((known) => known === fields["purpose"]);
  if (state !== "kept" || purpose === undefined || name === undefined) return undefined;
  const expiresAt = expires === "" ? undefined : Number(expires);
  return { ...address, bytes: Number(bytes), name, purpose, createdAt: Number(created), expiresAt };
}
