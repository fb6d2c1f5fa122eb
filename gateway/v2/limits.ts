/** What one HTTP request may cost (spec/reliability.md section 3); each is named in the refusal that it causes. */
export interface Limits {
  /** JSON, and each tensor given as JSON, after decompression. */
  readonly jsonBytes: number;
  /** The whole body of a binary request, after decompression. */
  readonly binaryBytes: number;
  /** Bodies of requests that only ask about the server. */
  readonly controlBytes: number;
  readonly defaultDeadlineMs: number;
  readonly maxDeadlineMs: number;
}

export const defaultLimits: Limits = {
  jsonBytes: 64 * 1024 * 1024,
  binaryBytes: 256 * 1024 * 1024,
  controlBytes: 1024 * 1024,
  defaultDeadlineMs: 60_000,
  maxDeadlineMs: 3_600_000,
};

export const maxRank = 16;
export const maxInputs = 1024;
export const maxTensorBytes = 2 ** 31;
