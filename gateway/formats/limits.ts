/** The limits of one HTTP request, in bytes. A refusal names the limit that caused it. */
import { InferenceError } from "#shared/errors.js";
import type { DeadlineLimits } from "../admission/request-terms.js";

export interface Limits extends DeadlineLimits {
  /** Longest JSON, and largest tensor given as JSON, after decompression. */
  readonly jsonBytes: number;
  /** Longest body of a request with binary tensors, after decompression. */
  readonly binaryBytes: number;
  /** Largest state of a sequence that a client may import. */
  readonly stateBytes: number;
  /** Longest body of a request that only asks about the server. */
  readonly controlBytes: number;
}

export const defaultLimits: Limits = {
  jsonBytes: 64 * 1024 * 1024,
  binaryBytes: 256 * 1024 * 1024,
  stateBytes: 16 * 1024 * 1024,
  controlBytes: 1024 * 1024,
  defaultDeadlineMs: 60_000,
  maxDeadlineMs: 3_600_000,
};

/**
 * Enough for the largest prompts (1 MiB, as JSON), and far less than a body of tensors may have.
 */
const maxTextBytes = 4 * 1024 * 1024;

/** Returns the largest body of a request for a generation, in bytes after decompression. */
export function textBodyLimit(limits: Limits): number {
  return Math.min(maxTextBytes, limits.jsonBytes);
}

/** Bytes that the frame of a state adds: names, digests, shapes. */
const frameHeadBytes = 64 * 1024;

/** Returns the longest body with the state of a sequence, in bytes after decompression. */
export function stateBodyLimit({ stateBytes, binaryBytes }: Limits): number {
  return Math.min(stateBytes + frameHeadBytes, binaryBytes);
}

/** The refusal of a body that is longer than the limit of its path. */
export function bodyTooLarge(maxBytes: number): InferenceError {
  return new InferenceError("payload_too_large", `request body is larger than the limit of ${maxBytes} bytes`);
}
