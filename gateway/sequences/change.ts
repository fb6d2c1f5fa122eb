/**
 * The beginning of an operation on a sequence: checks the version in the path, identifies the
 * change by its Idempotency-Key, and finds how long the model's sequences live.
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
 * How long Redis remembers a change without an Idempotency-Key, in ms. The retries of such a change
 * take less time (ask-redis.ts).
 */
const UNNAMED_TTL_MS = 60_000;

/** Whether a sequence has the version in the path. If the path names no version, any will do. */
export function isOfVersion({ version }: OfModel, { pin }: SequenceView): boolean {
  return version === undefined || version === pin.version;
}

/**
 * Refuses a sequence of another version than the version in the path.
 * @throws InferenceError `sequence_unknown` or `unavailable`
 */
export async function checkVersion(
  named: Named,
  { redis, buckets }: { readonly redis: RedisClient; readonly buckets: number },
): Promise<void> {
  if (named.version === undefined) return;
  const found = await askRedis(() => describeSequence(redis, addressOf(named, buckets)));
  // If the sequence is gone, an earlier try of the same change may have ended it.
  if (found.said !== "unknown" && !isOfVersion(named, found.view)) throw sequenceUnknown(named);
}

/**
 * Identifies the change, so that Redis makes the change once even if the client sends it many
 * times.
 * @param asked all values that must agree in two uses of an Idempotency-Key
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
 * How long Redis keeps the model's sequences between their steps.
 * @throws InferenceError `sequence_unknown` if the model has no sequences
 */
export function maxIdleMs({ name, sequence, generator }: ServedModel): number {
  const ms = sequence?.maxIdleMs ?? generator?.maxIdleMs;
  if (ms === undefined) throw new InferenceError("sequence_unknown", `model '${name}' has no sequences`);
  return ms;
}
