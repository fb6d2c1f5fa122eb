/** Which failures of a job are worth another attempt, and when that is made. */
import { errorKinds, isErrorCode, type ErrorCode } from "#shared/errors.js";
import { keptShare } from "#shared/queue/pieces/kept.js";
import { repeatsText } from "#shared/queue/pieces/job.js";
import type { EnqueueSettings } from "../admission/enqueue.js";
import type { JobOptions } from "./options.js";

/** Failures of the fleet. Of these, some would only happen again, and some are not failures. */
export const repeatedCodes: readonly string[] = Object.entries(errorKinds)
  .filter(([code, { status }]) => status >= 500 && !code.startsWith("state_"))
  .map(([code]) => code)
  .filter((code) => isErrorCode(code) && code !== "poison_request" && code !== "expired");

/**
 * Whether a job that is due, and was refused so, may be taken later as it is.
 * @param served all that workers serve now
 * @param isLate it was refused for some time
 */
export function mayFitLater(
  code: ErrorCode,
  model: string,
  served: readonly { readonly name: string }[],
  isLate: boolean,
): boolean {
  if (code !== "unknown_model") return errorKinds[code].retry;
  // Where no worker lives, nothing says which models there will be; and the only worker of one may
  // just be started anew.
  return served.length === 0 || (!isLate && !served.some(({ name }) => name === model));
}

/** @returns as the scripts read it; undefined where the job is tried once */
export function repeatsOf(
  { attempts, backoff }: JobOptions,
  { redis, buckets, limits }: EnqueueSettings,
): string | undefined {
  if (backoff === undefined) return undefined;
  const mostBytes = keptShare(limits?.laterBytes, redis.isCluster ? buckets : 1);
  const { type, delay: delayMs, max: mostMs } = backoff;
  return repeatsText({ attempts, delayMs, factor: type === "fixed" ? 1 : 2, mostMs, mostBytes, codes: repeatedCodes });
}
