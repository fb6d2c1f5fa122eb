/**
 * Handlers make replies; `send` alone writes them, straight to node's response: a Web `Response` would want a tensor's bytes joined
 * to the JSON before them, a copy of every large result.
 */
import type { ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { errorKinds, InferenceError, type ErrorCode } from "#shared/errors.js";
import { printJson } from "#shared/json/print.js";

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Written one after the other. */
  readonly body: readonly (string | Buffer)[];
}

export const emptyReply: Reply = { status: 200, headers: {}, body: [] };

export function jsonReply(value: unknown, status = 200): Reply {
  return { status, headers: { "content-type": "application/json" }, body: [printJson(value)] };
}

const maxTextLength = 4096;

/** Texts quote what the client sent, which may be a name of many megabytes. */
export function shortened(text: string): string {
  return text.length > maxTextLength ? `${text.slice(0, maxTextLength)}...` : text;
}

/** @param status where it must differ from the code's own */
export function errorReply(code: ErrorCode, message: string, status?: number): Reply {
  const { status: usual, retry } = errorKinds[code];
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (retry) headers["retry-after"] = "1";
  return { status: status ?? usual, headers, body: [errorText(code, message)] };
}

export function errorText(code: ErrorCode, message: string): string {
  return JSON.stringify({ error: shortened(message), code });
}

/** Undefined for what is not a refusal but a bug. */
export function refusalReply(error: unknown): Reply | undefined {
  if (!(error instanceof InferenceError)) return undefined;
  const reply = errorReply(error.code, error.message);
  return error instanceof UnsupportedEncoding
    ? withHeaders(reply, { "accept-encoding": UnsupportedEncoding.supported })
    : reply;
}

export class UnsupportedEncoding extends InferenceError {
  static readonly supported = "gzip, deflate";

  constructor() {
    super("unsupported", "Unsupported compression type");
  }
}

export function withHeaders(reply: Reply, headers: Record<string, string>): Reply {
  return { ...reply, headers: { ...reply.headers, ...headers } };
}

/** @param requestId for `x-request-id`, where it was not set before. */
export function send(outgoing: ServerResponse, { status, headers, body }: Reply, requestId?: string): Response {
  // Gone, or already begun by whoever failed after it: there is no reply to give.
  if (outgoing.headersSent || outgoing.destroyed) {
    outgoing.destroy();
    return RESPONSE_ALREADY_SENT;
  }
  let length = 0;
  for (const part of body) length += typeof part === "string" ? Buffer.byteLength(part) : part.length;
  const all: Record<string, string> = { ...headers, "content-length": String(length) };
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
