/** Errors as gRPC's clients see them: a status, a text, and metadata with Baton's code. */
import { Metadata, type StatusObject } from "@grpc/grpc-js";
import { errorKinds, fixedError, InferenceError, shortened, type ErrorCode } from "#shared/errors.js";
import { grpcStatusOf } from "#shared/grpc-status.js";
import { isRefusal } from "../../formats/errors.js";

/** When to try again if nothing says when it helps, in ms. */
const USUAL_WAIT_MS = 1_000;
/** Longest text, in characters, and with the dots of a cut text, encoded for a header. */
const MOST_TEXT = 4_096;
const MOST_DETAILS = MOST_TEXT + 3;

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
  return { code: grpcStatusOf(code), details: detailsOf(message), metadata };
}

/** Refuses a call because the gateway stops. */
export function stopping(): InferenceError {
  return new InferenceError("unavailable", "GRPC server is shutting down and has stopped accepting new requests.");
}

/** The text of an error as a message of a stream has it. */
export function textOf({ message }: InferenceError): string {
  return shortened(message, MOST_TEXT);
}

/** The text of a status, which travels percent-encoded in a header. Clients refuse a large head. */
export function detailsOf(text: string): string {
  let most = MOST_TEXT;
  let details = shortened(text, most);
  for (let { length } = encodeURI(details); length > MOST_DETAILS; { length } = encodeURI(details)) {
    most = Math.floor((most * MOST_TEXT) / length);
    details = shortened(text, most);
  }
  return details;
}
