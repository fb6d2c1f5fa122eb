/**
 * Finds streams that have ended meanwhile, or that no client reads any more. Gateways mark in Redis
 * until when clients want a stream, and an append says if the mark has lapsed. A stream that waits
 * for memory or for a long prompt appends nothing, so the worker asks Redis about it.
 */
import { fixedError, type InferenceError } from "#shared/errors.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import type { RedisClocks } from "#shared/redis/clock.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import type { StreamQueue } from "#shared/queue/work/lane.js";
import { isUnwanted, readStreamStates } from "#shared/queue/work/streams/read-progress.js";
import type { Stream } from "./stream.js";

/** In ms. Within this time after an outage of Redis, all gateways have renewed their marks. */
const MARKS_RENEWED_MS = 3_000;

/** @returns whether marks count now: only while gateways could have renewed their marks */
export function marksCount(outageGuard: OutageGuard): boolean {
  return outageGuard.steadyFor(performance.now()) >= MARKS_RENEWED_MS;
}

/** The error that ends a stream without a reader. */
export function nobodyReads(): InferenceError {
  return fixedError("cancelled", "unread");
}

export interface Inspection {
  readonly queue: StreamQueue;
  readonly clocks: RedisClocks;
  readonly outageGuard: OutageGuard;
}

/**
 * Asks Redis about streams that append nothing.
 * @returns the streams that already have an outcome, and the streams that no client reads any more
 * @throws Error if Redis does not answer
 */
export async function inspect(
  { queue, clocks, outageGuard }: Inspection,
  silent: readonly Stream[],
): Promise<{ readonly ended: Stream[]; readonly unread: Stream[] }> {
  const addresses = silent.map(({ held }) => held.delivery);
  const found = await readStreamStates(queue.redis, addresses);
  const mayBeUnread = marksCount(outageGuard);
  const ended = silent.filter((_, i) => found[i]?.state === "ended");
  const unread = silent.filter(({ held }, i) => {
    const progress = found[i];
    const now = clocks.of(bucketTag(held.delivery.bucket)).toRedis(performance.now());
    return mayBeUnread && progress !== undefined && progress.state !== "ended" && isUnwanted(progress, now);
  });
  return { ended, unread };
}
