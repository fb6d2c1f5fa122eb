/** Reads the request headers that mean the same on every path. */
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { checkIdempotencyKey } from "../admission/request-terms.js";

/** Returns the header `X-Request-Id` if valid, else a new id. Every reply repeats the id. */
export function chooseRequestId({ "x-request-id": given }: IncomingHttpHeaders): string {
  return typeof given === "string" && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : randomUUID();
}

/**
 * Reads the client's key for a request. A retry under this key gets the outcome of the first try.
 * @throws InferenceError if the key is too long or not printable
 */
export function readIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const header = headers["idempotency-key"];
  return header === undefined ? undefined : checkIdempotencyKey(String(header));
}

/**
 * Whether the client sent `Prefer: respond-async` (RFC 7240): the client does not wait, and fetches
 * the outcome later.
 */
export function prefersAsync({ prefer }: IncomingHttpHeaders): boolean {
  if (prefer === undefined) return false;
  return String(prefer)
    .split(",", 16)
    .some((preference) => preference.split(";", 1)[0]?.trim().toLowerCase() === "respond-async");
}

/**
 * Whether the client names this media type in Accept (RFC 9110, section 12.5.1). A wildcard does
 * not count, because clients that can only read one type send wildcards, too.
 */
export function acceptsByName({ accept = "" }: IncomingHttpHeaders, wanted: string): boolean {
  return accept.split(",", 16).some((range) => {
    const [type, ...parameters] = range.split(";", 16).map((part) => part.trim().toLowerCase());
    return type === wanted && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
