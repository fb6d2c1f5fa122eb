/** Decides which failures of a job are worth another attempt, and when to make the attempt. */
import { errorKinds, isErrorCode, type ErrorCode } from "#shared/errors.js";
import { keptShare } from "#shared/queue/pieces/kept.js";
import { repeatsText } from "#shared/queue/pieces/job.js";
import type { EnqueueSettings } from "../admission/enqueue.js";
import type { JobOptions } from "./options.js";

/**
 * Codes of failures of the fleet. Leaves out failures that would only happen again, and codes that
 * are not failures.
 */
export const repeatedCodes: readonly string[] = Object.entries(errorKinds)
  .filter(([code, { status }]) => status >= 500 && !code.startsWith("state_"))
  .map(([code]) => code)
  .filter((code) => isErrorCode(code) && code !== "poison_request" && code !== "expired");

/**
 * Whether workers may accept later, unchanged, a due job that was refused with this code.
 * @param served all models that workers serve now
 * @param isLate whether refusals have lasted for some time
 */
export function mayFitLater(
  code: ErrorCode,
  model: string,
  served: readonly { readonly name: string }[],
  isLate: boolean,
): boolean {
  // The tenant has too few tokens now, and has them again in time.
  if (code === "rate_limit_exceeded") return true;
  if (code !== "unknown_model") return errorKinds[code].retry;
  // If no worker lives, the gateway cannot know which models workers will serve. And the only
  // worker of a model may just be restarting.
  return served.length === 0 || (!isLate && !served.some(({ name }) => name === model));
}

/** @returns the text that the scripts read; undefined if the job has one attempt */
export function repeatsOf(
  { attempts, backoff }: JobOptions,
  { redis, buckets, limits }: EnqueueSettings,
): string | undefined {
  if (backoff === undefined) return undefined;
  const mostBytes = keptShare(limits?.laterBytes, redis.isCluster ? buckets : 1);
  const { type, delay: delayMs, max: mostMs } = backoff;
  return repeatsText({ attempts, delayMs, factor: type === "fixed" ? 1 : 2, mostMs, mostBytes, codes: repeatedCodes });
}
