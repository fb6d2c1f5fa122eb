/** What one request for a generation may cost the gateway, and how long it may take. */
import type { Limits } from "../v2/limits.js";

/** Room for prompts of the greatest size; far less than tensors may be. */
const maxBodyBytes = 4 * 1024 * 1024;

/** As long as OpenAI's clients wait by themselves. */
const usualDeadlineMs = 600_000;

export function textBodyLimit(limits: Limits): number {
  return Math.min(maxBodyBytes, limits.jsonBytes);
}

export function usualDeadline(limits: Limits): number {
  return Math.min(usualDeadlineMs, limits.maxDeadlineMs);
}
