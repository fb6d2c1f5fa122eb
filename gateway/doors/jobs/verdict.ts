/** Decides from an attempt's answer whether to end a delivery or to attempt it again (pure). */
import type { Attempt } from "#shared/queue/webhooks/deliveries.js";

/** The answer of the receiver, or the error of the network. */
export interface Answered extends Omit<Attempt, "at"> {
  /** The header `Retry-After`; absent if the answer has none. */
  readonly retryAfter?: string | undefined;
}

export type Verdict =
  | { readonly said: "delivered" }
  /** The receiver wants no further message of any kind. */
  | { readonly said: "gone" }
  | { readonly said: "again"; readonly inMs: number }
  /** The last attempt has failed. */
  | { readonly said: "failed" };

const GONE = 410;
/**
 * Lengthens a wait by up to this part, so that deliveries that failed together do not return
 * together.
 */
const JITTER = 0.1;
const LONGEST_RETRY_AFTER_MS = 86_400_000;

/**
 * @param tries how many attempts there were, with this attempt
 * @param waits before the second attempt, the third and so on, in ms
 * @param lot from 0 to below 1
 * @param now ms since the epoch
 */
export function verdictOn(
  { status, retryAfter }: Answered,
  tries: number,
  waits: readonly number[],
  lot: number,
  now: number,
): Verdict {
  if (status !== null && status >= 200 && status < 300) return { said: "delivered" };
  if (status === GONE) return { said: "gone" };
  const wait = waits[tries - 1];
  if (wait === undefined) return { said: "failed" };
  return { said: "again", inMs: Math.round(Math.max(wait * (1 + lot * JITTER), retryAfterMs(retryAfter, now))) };
}

/** Reads seconds or a date (RFC 9110, section 10.2.3). @returns 0 if the text is neither */
function retryAfterMs(text: string | undefined, now: number): number {
  if (text === undefined) return 0;
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}
