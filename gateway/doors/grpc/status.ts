/** Errors as gRPC's clients see them: a status, a text, and metadata with Baton's code. */
import { Metadata, type StatusObject } from "@grpc/grpc-js";
import { errorKinds, fixedError, InferenceError, type ErrorCode } from "#shared/errors.js";
import { grpcStatusOf } from "#shared/grpc-status.js";
import { isRefusal } from "../../formats/errors.js";

/** When to try again if nothing says when it helps, in ms. */
const USUAL_WAIT_MS = 1_000;
/** In characters. Texts quote the client's values, and a status travels in a header. */
const MOST_TEXT = 4_096;

/** The error as the client may see it; a bug tells nothing. */
export function toldOf(error: unknown): InferenceError {
  return isRefusal(error) ? error : fixedError("internal", "usual");
}

export function codeOf(error: unknown): ErrorCode {
  return toldOf(error).code;
}

/** @param requestId for the trailing metadata */
export function statusOf(error: unknown, requestId: string): StatusObject {
  const { code, message, reason, limited } = toldOf(error);
  const metadata = new Metadata();
  metadata.set("x-request-id", requestId);
  metadata.set("baton-code", code);
  if (reason !== undefined) metadata.set("baton-reason", reason);
  const waitMs = limited?.waitMs ?? (errorKinds[code].retry ? USUAL_WAIT_MS : undefined);
  if (waitMs !== undefined) metadata.set("grpc-retry-pushback-ms", String(Math.ceil(waitMs)));
  return { code: grpcStatusOf(code), details: shortened(message), metadata };
}

/** Refuses a call because the gateway stops. */
export function stopping(): InferenceError {
  return new InferenceError("unavailable", "GRPC server is shutting down and has stopped accepting new requests.");
}

/** A cut may split a character in two, of which no header can hold one half. */
export function shortened(text: string): string {
  return text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT).replace(/[\uD800-\uDBFF]$/, "")}...` : text;
}
