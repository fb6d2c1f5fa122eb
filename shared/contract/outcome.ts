/** How a request ended, in the form that Redis keeps and NATS carries. */
import type { FrameMeta } from "../frame.js";
import { fixedError, InferenceError, isErrorCode, type ErrorCode, type RefusalReason } from "../errors.js";

export type Outcome =
  | { readonly kind: "result"; readonly body: Buffer }
  | {
      readonly kind: "error";
      readonly code: ErrorCode;
      readonly message: string;
      /** Why a step was refused; it is not stored, since a worker has the usual reasons only. */
      readonly reason?: RefusalReason | undefined;
    };

/**
 * The two fields of an outcome hash. The body of a result is a frame (shared/frame.ts), or the
 * final record of a stream; that of an error is JSON with `code` and `message`.
 */
export interface StoredOutcome {
  readonly kind: "result" | "error";
  readonly body: Buffer;
}

export function storeOutcome(outcome: Outcome): StoredOutcome {
  if (outcome.kind === "result") return outcome;
  return { kind: "error", body: Buffer.from(JSON.stringify({ code: outcome.code, message: outcome.message })) };
}

/** What the frame of a step's result says of the step. */
export function stepMeta(number: number): FrameMeta {
  return { sequence_step: number };
}

/** @returns the number of the step, counted from its START; undefined for a stateless request */
export function stepOf(meta: FrameMeta): number | undefined {
  const number = meta["sequence_step"];
  return typeof number === "number" ? number : undefined;
}

/** The inverse of `storeOutcome`. A code of a newer version reads as `internal`. */
export function readOutcome(kind: string, body: Buffer): Outcome {
  if (kind === "result") return { kind, body };
  const error = JSON.parse(body.toString("utf8")) as { code: string; message: string };
  return { kind: "error", code: isErrorCode(error.code) ? error.code : "internal", message: error.message };
}

/**
 * Reads an outcome as Redis keeps it. The body of a result may be gone before its request is
 * forgotten.
 */
export function readKept(kind: string, body: Buffer | null | undefined): Outcome {
  if (body !== null && body !== undefined && body.length > 0) return readOutcome(kind, body);
  return outcomeOf(fixedError("result_expired", "usual"));
}

/**
 * The outcome of a request that ended with this error: one that is no refusal is a bug, and its
 * text stays here.
 */
export function outcomeOf(error: unknown): Outcome {
  const { code, message, reason } = error instanceof InferenceError ? error : fixedError("internal", "usual");
  return { kind: "error", code, message, ...(reason !== undefined && { reason }) };
}
