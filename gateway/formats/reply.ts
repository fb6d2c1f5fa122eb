/** An answer before a door writes it: a status, headers, and a body in parts. */
import type { ErrorCode } from "#shared/errors.js";
import { printJson } from "#shared/json/print.js";

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Parts, written one after the other. */
  readonly body: readonly (string | Buffer)[];
  /** The code of the error that this reply says; absent for other replies. */
  readonly code?: ErrorCode;
}

/** The length of a body in bytes. */
export function lengthOf(body: Reply["body"]): number {
  let length = 0;
  for (const part of body) length += typeof part === "string" ? Buffer.byteLength(part) : part.length;
  return length;
}

/** Status 200 without a body. */
export const emptyReply: Reply = { status: 200, headers: {}, body: [] };
export const noContent: Reply = { status: 204, headers: {}, body: [] };

export function jsonReply(value: unknown, status = 200): Reply {
  return jsonTextReply(printJson(value), status);
}

/** @param text a value in JSON */
export function jsonTextReply(text: string, status = 200): Reply {
  return { status, headers: { "content-type": "application/json" }, body: [text] };
}

export function withHeaders(reply: Reply, headers: Readonly<Record<string, string>>): Reply {
  return { ...reply, headers: { ...reply.headers, ...headers } };
}

/** The answer holds a secret, so no cache may keep the answer. */
export function secretReply(value: unknown, status = 200): Reply {
  return withHeaders(jsonReply(value, status), { "cache-control": "no-store" });
}

/**
 * Makes the answer to `Prefer: respond-async`.
 * @param id public id of the request, which now runs in the background
 */
export function acceptedReply(id: string): Reply {
  const headers = {
    location: `/v2/requests/${id}`,
    "preference-applied": "respond-async",
    "baton-request-id": id,
  };
  return withHeaders(jsonReply({ id, state: "queued" }, 202), headers);
}
