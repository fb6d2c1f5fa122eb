/** The names of sequences in requests and in answers. */
import type { ServedModel } from "#shared/contract/announcement.js";
import { decodeCorrelationId, encodeCorrelationId, type CorrelationId } from "#shared/contract/sequence.js";
import { InferenceError } from "#shared/errors.js";
import { bucketOf, encodedIdOf, sequenceName } from "#shared/queue/address.js";
import type { SequenceAddress } from "#shared/queue/sequences/address.js";
import { readCorrelationId } from "../admission/request-terms.js";

/** Which sequences a request is about. */
export interface OfModel {
  readonly tenant: string;
  readonly model: ServedModel;
  /** The version in the request; only sequences of this version count. Undefined: all count. */
  readonly version: string | undefined;
  /** How many live sequences of all models the tenant may have; undefined: no limit. */
  readonly liveSequences?: number | undefined;
}

/** Which sequence a request is about. */
export interface Named extends OfModel {
  readonly id: CorrelationId;
}

/** A request that changes a sequence. */
export interface Change extends Named {
  readonly idempotencyKey: string | undefined;
}

/**
 * Reads the segment of a path that names a sequence. Digits mean the uint64, unless `type` says
 * `string`.
 * @param segment as the client sent it, percent-encoded
 * @param type the query parameter `type`; undefined if absent
 * @throws InferenceError if the segment names no sequence
 */
export function readSequenceId(segment: string, type: string | undefined): CorrelationId {
  const text = decoded(segment);
  if (type !== undefined && type !== "string" && type !== "uint64") {
    throw new InferenceError("invalid_argument", `type must be 'string' or 'uint64', not '${type}'`);
  }
  if (type === "string" || (type === undefined && !/^\d+$/.test(text))) return readCorrelationId(text);
  const value = /^\d{1,20}$/.test(text) ? BigInt(text) : -1n;
  if (value >= 0n && value < 2n ** 64n) return { kind: "uint64", value };
  throw new InferenceError(
    "invalid_argument",
    `'${text}' is no unsigned 64-bit integer; add ?type=string where it is a string`,
  );
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    throw new InferenceError("invalid_argument", `the sequence id '${segment}' is not percent-encoded UTF-8`, {
      cause,
    });
  }
}

/** @param name from `sequenceName` */
export function sequenceIdOf(name: string): bigint | string {
  return decodeCorrelationId(encodedIdOf(name)).value;
}

/** @returns beginnings of the names of all sequences whose ids begin so, and of some others */
export function beginningsOf(tenant: string, prefix: string): string[] {
  // Three bytes of a string are four characters of its name, which do not depend on what follows.
  const bytes = Buffer.from(prefix, "utf8");
  const ofTexts = `s${bytes.subarray(0, bytes.length - (bytes.length % 3)).toString("base64url")}`;
  const encoded = /^\d+$/.test(prefix) ? [ofTexts, `u${prefix}`] : [ofTexts];
  return encoded.map((text) => sequenceName(tenant, text));
}

/** @param buckets of the deployment */
export function addressOf({ tenant, model, id }: Named, buckets: number): SequenceAddress {
  const encoded = encodeCorrelationId(id);
  const bucket = bucketOf(model.name, tenant, encoded, buckets);
  return { bucket, model: model.name, name: sequenceName(tenant, encoded) };
}
