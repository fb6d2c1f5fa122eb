/** How long a generation may take by default. */
import type { DeadlineLimits } from "../admission/request-terms.js";

/** OpenAI's clients give up after 600 s by themselves. */
const usualDeadlineMs = 600_000;

/** @returns how long the first token may take if the client does not say, in ms */
export function usualDeadline(limits: DeadlineLimits): number {
  return Math.min(usualDeadlineMs, limits.maxDeadlineMs);
}
