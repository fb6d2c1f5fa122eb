/**
 * Writes replies straight to node's response. A Web `Response` would need the bytes of tensors
 * joined to the JSON before them, a copy of every large result.
 */
import type { ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { lengthOf, type Reply } from "../formats/reply.js";
import { factsOf } from "../facts/answer-facts.js";
import { countRefusal, modelOf } from "./counts.js";

/** Statuses without a body, for which HTTP allows no Content-Length of 0. */
const bodiless: ReadonlySet<number> = new Set([204, 304]);

/**
 * Writes a reply.
 * @param requestId for the header `x-request-id`, if not set before
 */
export function send(outgoing: ServerResponse, reply: Reply, requestId?: string): Response {
  const { status, headers, body, code } = reply;
  // The client has gone, or a failure came after the head: no reply is possible now.
  if (outgoing.headersSent || outgoing.destroyed) {
    outgoing.destroy();
    return RESPONSE_ALREADY_SENT;
  }
  countRefusal(reply, modelOf(outgoing));
  const facts = factsOf(outgoing.req);
  if (facts !== undefined) facts.code ??= code;
  const length = lengthOf(body);
  const all: Record<string, string> = { ...headers };
  // If a handler answers HEAD itself, the length of the body of GET is unknown.
  const isUnknown = length === 0 && outgoing.req.method === "HEAD";
  if (!bodiless.has(status) && !isUnknown) all["content-length"] = String(length);
  if (requestId !== undefined) all["x-request-id"] = requestId;
  outgoing.writeHead(status, all);
  const last = body.length - 1;
  if (last > 0) {
    outgoing.cork();
    for (let index = 0; index < last; index++) outgoing.write(body[index]);
    outgoing.end(body[last]);
    outgoing.uncork();
  } else outgoing.end(body[0]);
  return RESPONSE_ALREADY_SENT;
}
