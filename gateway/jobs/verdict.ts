/** What an attempt at a webhook comes to (pure). */
import type { Attempt } from "#shared/queue/webhooks/deliveries.js";

/** What an attempt brought, as the receiver or the network answered it. */
export interface Answered extends Omit<Attempt, "at"> {
  /** The header `Retry-After`, where there was one. */
  readonly retryAfter?: string | undefined;
}

export type Verdict =
  | { readonly said: "delivered" }
  /** The receiver wants no more of any kind. */
  | { readonly said: "gone" }
  | { readonly said: "again"; readonly inMs: number }
  /** It was attempted as often as it may be. */
  | { readonly said: "failed" };

const GONE = 410;
/** A wait is made longer by up to this part: what failed together is not to come together. */
const JITTER = 0.1;
const LONGEST_RETRY_AFTER_MS = 86_400_000;

/**
 * @param tries how many attempts there were, this one included
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

/** Seconds, or a date (RFC 9110, section 10.2.3); 0 where it says nothing. */
function retryAfterMs(text: string | undefined, now: number): number {
  if (text === undefined) return 0;
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}
