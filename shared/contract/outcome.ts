/** How a request ended, in the form that Redis keeps and NATS carries. */
import type { FrameMeta } from "../frame.js";
import { fixedError, InferenceError, isErrorCode, type ErrorCode, type RefusalReason } from "../errors.js";

export type Outcome =
  | { readonly kind: "result"; readonly body: Buffer }
  | {
      readonly kind: "error";
      readonly code: ErrorCode;
      readonly message: string;
      /**
       * Why Baton refused a step. Not stored, because workers give only reasons that `usualReason`
       * derives from the code.
       */
      readonly reason?: RefusalReason | undefined;
      /** The text of the worker's timings; absent if no worker has run the request. */
      readonly note?: string | undefined;
    };

/**
 * The two fields of an outcome hash. The body of a result is a frame (shared/frame.ts), or the
 * final record of a stream. The body of an error is JSON with `code` and `message`, and may have
 * the timings as `t`.
 */
export interface StoredOutcome {
  readonly kind: "result" | "error";
  readonly body: Buffer;
}

export function storeOutcome(outcome: Outcome): StoredOutcome {
  if (outcome.kind === "result") return outcome;
  const { code, message, note } = outcome;
  const text = JSON.stringify({ code, message });
  return { kind: "error", body: Buffer.from(note === undefined ? text : `${text.slice(0, -1)},"t":${note}}`) };
}

/** The step's number, in the metadata of a result's frame. */
export function stepMeta(number: number): FrameMeta {
  return { sequence_step: number };
}

/** @returns the number of the step, counted from START; undefined for a stateless request */
export function stepOf(meta: FrameMeta): number | undefined {
  const number = meta["sequence_step"];
  return typeof number === "number" ? number : undefined;
}

/** The inverse of `storeOutcome`. An unknown code, from a newer version, reads as `internal`. */
export function readOutcome(kind: string, body: Buffer): Outcome {
  if (kind === "result") return { kind, body };
  const { code, message, t } = JSON.parse(body.toString("utf8")) as { code: string; message: string; t?: unknown };
  const note = t === undefined ? undefined : { note: JSON.stringify(t) };
  return { kind: "error", code: isErrorCode(code) ? code : "internal", message, ...note };
}

/**
 * Reads an outcome from Redis. The body of a result may expire before Redis forgets the request.
 */
export function readKept(kind: string, body: Buffer | null | undefined): Outcome {
  if (body !== null && body !== undefined && body.length > 0) return readOutcome(kind, body);
  return outcomeOf(fixedError("result_expired", "usual"));
}

/**
 * The outcome of a request that ended with this error. An error other than InferenceError is a bug,
 * and its text stays in the process.
 */
export function outcomeOf(error: unknown): Extract<Outcome, { kind: "error" }> {
  const { code, message, reason } = error instanceof InferenceError ? error : fixedError("internal", "usual");
  return { kind: "error", code, message, ...(reason !== undefined && { reason }) };
}
