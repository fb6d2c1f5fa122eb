/** Writes a reply as node's server would write it, in one piece if it is small. */
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { lengthOf, type Reply } from "../formats/reply.js";

/** Up to this size, copying a reply costs less than further writes. */
const joinBelowBytes = 64 * 1024;

export interface ReplyTerms {
  readonly requestId: string;
  /**
   * How long the connection may be silent behind the reply, in ms; undefined if the connection ends
   * behind it.
   */
  readonly keepAliveMs: number | undefined;
  /** Called when the reply has left, or with an error if it cannot. */
  readonly onWritten?: ((error?: Error | null) => void) | undefined;
}

export function writeReply(
  socket: Socket,
  { status, headers, body }: Reply,
  { requestId, keepAliveMs, onWritten }: ReplyTerms,
): void {
  const length = lengthOf(body);
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n`;
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
  head += `content-length: ${length}\r\nx-request-id: ${requestId}\r\nDate: ${dateNow()}\r\n`;
  head +=
    keepAliveMs === undefined
      ? "Connection: close\r\n\r\n"
      : `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1_000)}\r\n\r\n`;
  if (length > joinBelowBytes) {
    socket.cork();
    socket.write(head, "latin1");
    const last = body.length - 1;
    for (let i = 0; i < last; i++) socket.write(body[i] ?? "");
    socket.write(body[last] ?? "", onWritten);
    socket.uncork();
    return;
  }
  const bytes = Buffer.allocUnsafe(head.length + length);
  let at = bytes.write(head, "latin1");
  for (const part of body) at += typeof part === "string" ? bytes.write(part, at) : part.copy(bytes, at);
  socket.write(bytes, onWritten);
}

let second = 0;
let text = "";

/** The field Date, which changes once in a second. */
function dateNow(): string {
  const now = Math.floor(Date.now() / 1000);
  if (now !== second) {
    second = now;
    text = new Date(now * 1000).toUTCString();
  }
  return text;
}
