/**
 * A request's public id says where its records lie, so any gateway finds them without an index: `<request>.<shard>.<version>.<model>`.
 * The random part keeps it from being guessed.
 */
import type { Lane } from "#shared/keys.js";

export interface RequestAddress {
  readonly lane: Lane;
  /** The id as it stands in keys and entries; holds no dot. */
  readonly request: string;
}

export function encodeRequestId({ lane: { model, version, shard }, request }: RequestAddress): string {
  return `${request}.${shard}.${version}.${model}`;
}

/** @returns undefined for what no gateway made. */
export function decodeRequestId(id: string): RequestAddress | undefined {
  const parts = /^([A-Za-z0-9_-]{1,64})\.(\d{1,5})\.(\d{1,19})\.([A-Za-z0-9._-]{1,128})$/.exec(id);
  if (parts === null) return undefined;
  const [, request = "", shard = "", version = "", model = ""] = parts;
  return { request, lane: { model, version, shard: Number(shard) } };
}
