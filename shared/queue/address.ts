/**
 * Where requests lie. All keys of a request are in one bucket, which is one Redis Cluster slot,
 * whatever its model and version. Within its bucket a request is known by its tenant and its id, so
 * two tenants never meet, whatever ids they use. A lane is one queue of a bucket: that of the
 * requests that one version of one model is to run.
 */
import { crc32 } from "node:zlib";
import type { ServedModel } from "../contract/announcement.js";
import { MOST_BUCKETS } from "../buckets.js";

/**
 * What a sequence stays with from its START to its end: one version of its model, as one set of
 * files. Two workers that serve other files under the same version have other digests.
 */
export interface Pin {
  readonly version: string;
  /** The beginning of the digest that the workers announce; see `pinOf`. */
  readonly digest: string;
}

/** One queue: the requests of one bucket that one version of a model is to run. */
export interface Lane extends Pin {
  /** From 0; below the number of buckets of the deployment. */
  readonly bucket: number;
  readonly model: string;
}

/** A request within its bucket. */
export interface RequestInBucket {
  /** Whose request it is: `[A-Za-z0-9_-]+`. */
  readonly tenant: string;
  /** The id as it stands in keys and entries: `[A-Za-z0-9_-]+`. */
  readonly request: string;
}

/**
 * What names a request for ever. No version is part of it: a retry finds its first try after a
 * roll-out, too.
 */
export interface RequestAddress extends RequestInBucket {
  readonly bucket: number;
  readonly model: string;
}

/** So much of a digest tells any two sets of files apart, and keeps keys short. */
const DIGEST_LENGTH = 12;

export function pinOf({ version, digest }: Pick<ServedModel, "version" | "digest">): Pin {
  return { version, digest: digest.slice(0, DIGEST_LENGTH) };
}

/** The pin as it stands in keys and in the records of sequences: `version:digest`. */
export function pinText({ version, digest }: Pin): string {
  return `${version}:${digest}`;
}

/** The inverse of `pinText`. */
export function parsePin(text: string): Pin {
  const end = text.indexOf(":");
  return { version: text.slice(0, end), digest: text.slice(end + 1) };
}

/**
 * The bucket of a request: that of its sequence, or for a request without one, of its id. Every
 * gateway of a deployment chooses alike, since `buckets` is part of what they have agreed on.
 * @param what the name of the sequence, or the id of the request
 */
export function bucketOf(model: string, tenant: string, what: string, buckets: number): number {
  return crc32(`${model}:${tenant}:${what}`) % buckets;
}

/** The name of a request within its bucket, as it stands in keys, entries and replies. */
export function requestName({ tenant, request }: RequestInBucket): string {
  return `${tenant}:${request}`;
}

/** The inverse of `requestName`: neither part holds a colon. */
export function parseRequestName(name: string): RequestInBucket {
  const end = name.indexOf(":");
  return { tenant: name.slice(0, end), request: name.slice(end + 1) };
}

/**
 * The name of a sequence among those of its model: `tenant:id`. It is injective, since neither a
 * tenant nor an encoded id holds a colon.
 * @param encodedId from `encodeCorrelationId`
 */
export function sequenceName(tenant: string, encodedId: string): string {
  return `${tenant}:${encodedId}`;
}

/** The encoded id in the name of a sequence. */
export function encodedIdOf(sequence: string): string {
  return sequence.slice(sequence.indexOf(":") + 1);
}

/** One string per address, for maps. It never leaves the process. */
export function addressText(address: RequestAddress): string {
  return `${address.bucket}:${requestName(address)}`;
}

/** One string per lane, for maps. It never leaves the process. */
export function laneText({ bucket, model, version, digest }: Lane): string {
  return `${bucket}:${model}:${version}:${digest}`;
}

/**
 * A request's public id, `<request>.<bucket>.<model>`: it says where the request lies, so any
 * gateway finds it without an index. The tenant is not in it: a gateway adds that of its caller, so
 * nobody can name another tenant's request. The random part keeps the id from being guessed.
 */
export function encodeRequestId({ bucket, model, request }: Omit<RequestAddress, "tenant">): string {
  return `${request}.${bucket}.${model}`;
}

/**
 * @param tenant the caller's
 * @returns undefined for an id that no gateway made
 */
export function decodeRequestId(id: string, tenant: string): RequestAddress | undefined {
  const parts = /^([A-Za-z0-9_-]{1,64})\.(\d{1,5})\.([A-Za-z0-9._-]{1,128})$/.exec(id);
  if (parts === null) return undefined;
  const [, request = "", bucket = "", model = ""] = parts;
  return Number(bucket) < MOST_BUCKETS ? { bucket: Number(bucket), model, tenant, request } : undefined;
}
