/** `Prefer: respond-async` (RFC 7240): the client does not wait, and comes back for the outcome. */
import type { IncomingHttpHeaders } from "node:http";
import { jsonReply, withHeaders, type Reply } from "../v2/reply.js";

export function prefersAsync({ prefer }: IncomingHttpHeaders): boolean {
  if (prefer === undefined) return false;
  return String(prefer)
    .split(",", 16)
    .some((preference) => preference.split(";", 1)[0]?.trim().toLowerCase() === "respond-async");
}

/** @param id public id of a request that was admitted to run in the background. */
export function acceptedReply(id: string): Reply {
  const headers = {
    location: `/v2/requests/${id}`,
    "preference-applied": "respond-async",
    "baton-request-id": id,
  };
  return withHeaders(jsonReply({ id, state: "queued" }, 202), headers);
}
