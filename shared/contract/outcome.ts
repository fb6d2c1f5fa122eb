/** How a request ended, as it is kept in Redis and sent over NATS. */
import { InferenceError, isErrorCode, type ErrorCode } from "#shared/errors.js";

export type Outcome =
  | { readonly kind: "result"; readonly body: Buffer }
  | { readonly kind: "error"; readonly code: ErrorCode; readonly message: string };

/** The two stored fields. A result's body is its frame; an error's is JSON. */
export interface StoredOutcome {
  readonly kind: "result" | "error";
  readonly body: Buffer;
}

export function storeOutcome(outcome: Outcome): StoredOutcome {
  if (outcome.kind === "result") return outcome;
  return { kind: "error", body: Buffer.from(JSON.stringify({ code: outcome.code, message: outcome.message })) };
}

export function readOutcome(kind: string, body: Buffer): Outcome {
  if (kind === "result") return { kind, body };
  const error = JSON.parse(body.toString("utf8")) as { code: string; message: string };
  return { kind: "error", code: isErrorCode(error.code) ? error.code : "internal", message: error.message };
}

export function outcomeOf(error: unknown): Outcome {
  if (error instanceof InferenceError) return { kind: "error", code: error.code, message: error.message };
  return { kind: "error", code: "internal", message: "internal error" };
}
