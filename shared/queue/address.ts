/**
 * The addresses of requests. All keys of a request lie in one bucket, which is one Redis Cluster
 * slot, for any model and version. Within a bucket a request has a tenant and an id, so two tenants
 * never meet, even under the same id. A lane is one queue of a bucket, for the requests to one
 * version of one model.
 */
import { crc32 } from "node:zlib";
import type { ServedModel } from "../contract/announcement.js";
import { MOST_BUCKETS } from "../buckets.js";

/**
 * The version that a sequence keeps from START to END: one version of a model, as one set of files.
 * Two workers that serve different files under the same version have different digests.
 */
export interface Pin {
  readonly version: string;
  /** The beginning of the digest that the workers announce; see `pinOf`. */
  readonly digest: string;
}

/** One queue: the requests of one bucket to one version of a model. */
export interface Lane extends Pin {
  /** From 0; below the number of buckets of the deployment. */
  readonly bucket: number;
  readonly model: string;
}

/** A request within its bucket. */
export interface RequestInBucket {
  /** The tenant of the request: `[A-Za-z0-9_-]+`. */
  readonly tenant: string;
  /** The id in keys and entries: `[A-Za-z0-9_-]+`. */
  readonly request: string;
}

/**
 * The permanent name of a request. The name has no version, so a retry finds the first try even
 * after a roll-out.
 */
export interface RequestAddress extends RequestInBucket {
  readonly bucket: number;
  readonly model: string;
}

/** Characters of a digest that tell any two sets of files apart, and keep keys short. */
const DIGEST_LENGTH = 12;

export function pinOf({ version, digest }: Pick<ServedModel, "version" | "digest">): Pin {
  return { version, digest: digest.slice(0, DIGEST_LENGTH) };
}

/** The pin in keys and in the records of sequences: `version:digest`. */
export function pinText({ version, digest }: Pin): string {
  return `${version}:${digest}`;
}

/** The inverse of `pinText`. */
export function parsePin(text: string): Pin {
  const end = text.indexOf(":");
  return { version: text.slice(0, end), digest: text.slice(end + 1) };
}

/**
 * The bucket of a request: the bucket of its sequence, or of its id if there is no sequence. All
 * gateways of a deployment choose alike, because `buckets` is part of their deployment record.
 * @param what the name of the sequence, or the id of the request
 */
export function bucketOf(model: string, tenant: string, what: string, buckets: number): number {
  return crc32(`${model}:${tenant}:${what}`) % buckets;
}

/** The name of a request within its bucket, in keys, entries and replies. */
export function requestName({ tenant, request }: RequestInBucket): string {
  return `${tenant}:${request}`;
}

/** The inverse of `requestName`: neither part holds a colon. */
export function parseRequestName(name: string): RequestInBucket {
  const end = name.indexOf(":");
  return { tenant: name.slice(0, end), request: name.slice(end + 1) };
}

/**
 * The name of a sequence among the sequences of a model: `tenant:id`. Two sequences never share a
 * name, because neither a tenant nor an encoded id holds a colon.
 * @param encodedId from `encodeCorrelationId`
 */
export function sequenceName(tenant: string, encodedId: string): string {
  return `${tenant}:${encodedId}`;
}

/** The encoded id in the name of a sequence. */
export function encodedIdOf(sequence: string): string {
  return sequence.slice(sequence.indexOf(":") + 1);
}

/** One string per address, for maps. The string never leaves the process. */
export function addressText(address: RequestAddress): string {
  return `${address.bucket}:${requestName(address)}`;
}

/** One string per lane, for maps. The string never leaves the process. */
export function laneText({ bucket, model, version, digest }: Lane): string {
  return `${bucket}:${model}:${version}:${digest}`;
}

/**
 * A request's public id, `<request>.<bucket>.<model>`. The id has the bucket, so each gateway finds
 * the request without an index. There is no tenant in the id: a gateway adds the caller's tenant,
 * so no client can name another tenant's request. The random part keeps clients from guessing ids.
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
