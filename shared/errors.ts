/**
 * Every refusal and failure that Baton gives, by code. Codes travel over Redis and NATS and stay stable; whether to retry is read
 * from this table, never from a text. Statuses follow Triton's (spec/http-v2.md section 2) where Triton has the situation at all.
 */
export interface ErrorKind {
  /** HTTP status on KServe paths. */
  readonly status: 400 | 403 | 404 | 405 | 408 | 409 | 410 | 413 | 415 | 422 | 429 | 500 | 501 | 503;
  /** The same request may succeed later, unchanged. Adds `Retry-After`. */
  readonly retry: boolean;
}

export const errorKinds = {
  invalid_json: { status: 400, retry: false },
  invalid_argument: { status: 400, retry: false },
  /** Triton answers 500 where a JSON tensor's element count differs from its shape. */
  data_shape_mismatch: { status: 500, retry: false },
  payload_too_large: { status: 413, retry: false },
  request_timeout: { status: 408, retry: false },
  /** For a browser that acts on behalf of a page that may not. */
  forbidden: { status: 403, retry: false },
  not_found: { status: 404, retry: false },
  method_not_allowed: { status: 405, retry: false },
  unsupported: { status: 501, retry: false },
  unknown_model: { status: 404, retry: false },
  model_unavailable: { status: 503, retry: true },
  sequence_start_required: { status: 400, retry: false },
  sequence_backlog: { status: 429, retry: true },
  sequence_limit: { status: 429, retry: true },
  idempotency_mismatch: { status: 422, retry: false },
  queue_full: { status: 503, retry: true },
  /** Redis or another part of the fleet cannot be reached, or this process is stopping. */
  unavailable: { status: 503, retry: true },
  /** The record may or may not have been written; safe to retry under the same Idempotency-Key. */
  outcome_unknown: { status: 503, retry: true },
  /** The deadline passed before a result; the model never ran this request, or its result came too late to count. */
  expired: { status: 503, retry: false },
  cancelled: { status: 400, retry: false },
  /** The model itself refused this request; the sequence keeps its state. */
  model_error: { status: 500, retry: false },
  /** This request ended the process that ran it too often and was set aside. */
  poison_request: { status: 500, retry: false },
  state_lost: { status: 500, retry: false },
  state_corrupt: { status: 500, retry: false },
  state_too_large: { status: 500, retry: false },
  /** The queue's entry was destroyed from outside before a worker finished it. */
  request_lost: { status: 500, retry: true },
  unknown_request: { status: 404, retry: false },
  /** A client resumes after an index that the stream has not reached: it read another stream, or a log that was lost. */
  ahead_of_log: { status: 409, retry: false },
  /** A request that has ended by itself cannot be cancelled. */
  already_ended: { status: 409, retry: false },
  /** The stream's log has been let go. */
  resume_window_passed: { status: 410, retry: false },
  internal: { status: 500, retry: false },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorKinds, code);
}

/** Thrown where the caller cannot go on; `message` is what the client reads, so it never holds a path, key or address. */
export class InferenceError extends Error {
  override readonly name = "InferenceError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
