/**
 * The seed of a generation, a whole number below 2^53. Where the client gives none, one is drawn here, so that another worker that takes the request over draws the
 * same tokens; a request with an Idempotency-Key draws it from the key, since a retry must be the same request.
 */
import { createHash, randomBytes } from "node:crypto";
import type { JsonValue } from "#shared/json/parse.js";
import { ParameterFault, shown } from "./fault.js";

export function readSeed(value: JsonValue | undefined, idempotencyKey: string | undefined): number {
  if (value === undefined) {
    return first53Bits(idempotencyKey === undefined ? randomBytes(8) : digest(`key ${idempotencyKey}`));
  }
  if (typeof value !== "bigint" && !Number.isInteger(value)) {
    throw new ParameterFault("seed", `seed must be a whole number, got ${shown(value)}`);
  }
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  return first53Bits(digest(`seed ${value as number | bigint}`));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function first53Bits(bytes: Buffer): number {
  return Number(bytes.readBigUInt64BE(0) >> 11n);
}
