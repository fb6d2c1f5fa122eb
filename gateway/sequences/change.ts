/**
 * What an operation on a sequence begins with: whether the sequence has the version that the path
 * names, which change this is under its Idempotency-Key, and how long the model's sequences live.
 */
import { createHash, randomUUID } from "node:crypto";
import type { ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import { describeSequence } from "#shared/queue/sequences/describe.js";
import type { Once } from "#shared/queue/sequences/once.js";
import type { SequenceView } from "#shared/queue/sequences/view.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis } from "../admission/ask-redis.js";
import { sequenceUnknown } from "./refusals.js";
import { addressOf, type Change, type Named, type OfModel } from "./sequence-id.js";

/**
 * How long a change without an Idempotency-Key is remembered, in ms. It is retried for a shorter
 * time (ask-redis.ts).
 */
const UNNAMED_TTL_MS = 60_000;

/** Whether a sequence has the version that the path names; without a name any will do. */
export function isOfVersion({ version }: OfModel, { pin }: SequenceView): boolean {
  return version === undefined || version === pin.version;
}

/**
 * Refuses a sequence of another version than the path names.
 * @throws InferenceError `sequence_unknown` or `unavailable`
 */
export async function checkVersion(
  named: Named,
  { redis, buckets }: { readonly redis: RedisClient; readonly buckets: number },
): Promise<void> {
  if (named.version === undefined) return;
  const found = await askRedis(() => describeSequence(redis, addressOf(named, buckets)));
  // A sequence that exists no more may have been ended by an earlier try of this very change.
  if (found.said !== "unknown" && !isOfVersion(named, found.view)) throw sequenceUnknown(named);
}

/**
 * Says which change this is, so that it is made once however often it is sent.
 * @param asked all that makes two uses of one Idempotency-Key the same change
 */
export function onceOf(
  change: Change,
  { buckets, idempotencyTtlMs }: { readonly buckets: number; readonly idempotencyTtlMs: number },
  asked: readonly (string | number | null)[],
): Once {
  const { idempotencyKey: key, version } = change;
  const digest = createHash("sha256")
    .update(JSON.stringify([version ?? null, ...asked]))
    .digest("base64url");
  const of = addressOf(change, buckets).name;
  if (key === undefined) return { key: randomUUID(), of, digest, ttlMs: UNNAMED_TTL_MS };
  return { key, of, digest, ttlMs: idempotencyTtlMs };
}

/**
 * How long the model's sequences are kept between their steps.
 * @throws InferenceError `sequence_unknown` where it has none
 */
export function maxIdleMs({ name, sequence, generator }: ServedModel): number {
  const ms = sequence?.maxIdleMs ?? generator?.maxIdleMs;
  if (ms === undefined) throw new InferenceError("sequence_unknown", `model '${name}' has no sequences`);
  return ms;
}
