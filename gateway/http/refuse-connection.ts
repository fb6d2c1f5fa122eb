/**
 * Refuses a connection whose bytes are no request or come too late, when node has no response
 * object for the refusal.
 */
import { STATUS_CODES, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { fixedError } from "#shared/errors.js";
import { errorReply } from "../formats/errors.js";
import { lengthOf, type Reply } from "../formats/reply.js";
import { factsOf, noteReply, type AccessLog } from "../facts/answer-facts.js";
import { countRefusal, type HttpCounts } from "./counts.js";
import { chooseRequestId } from "./headers.js";

/** Returns the reply for a reason of node's parser to refuse. */
function parserRefusal(reason: string | undefined): Reply {
  switch (reason) {
    case "HPE_HEADER_OVERFLOW":
      return errorReply(fixedError("invalid_argument", "headTooLarge"), "kserve", 431);
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return errorReply(fixedError("payload_too_large", "chunkExtensions"));
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return errorReply(fixedError("request_timeout", "usual"));
    default:
      return errorReply(fixedError("invalid_argument", "malformedHttp"));
  }
}

/** The parts that hear of a refusal. */
export interface RefusalNotes {
  readonly counts?: HttpCounts | undefined;
  readonly access?: AccessLog | undefined;
}

/**
 * Refuses bytes that the parser refused. The server reads nothing more, so the connection ends. The
 * refusal must not get into a reply that has begun.
 * @param begun the unfinished reply on the connection
 */
export function refuseConnection(
  socket: Socket,
  reason: string | undefined,
  begun: ServerResponse | undefined,
  { counts, access }: RefusalNotes = {},
): void {
  if (!socket.writable || begun?.headersSent === true) {
    socket.destroy();
    return;
  }
  const refusal = parserRefusal(reason);
  const { status } = refusal;
  countRefusal(refusal);
  counts?.connectionRefused(status);
  const body = refusal.body.join("");
  const requestId = chooseRequestId({});
  // The refusal answers the request that has begun, if there is one. Nobody reads it after a reset.
  const isRead = access !== undefined && reason !== "ECONNRESET";
  const facts = isRead ? ((begun && factsOf(begun.req)) ?? access.hear({ socket })) : undefined;
  if (facts !== undefined) noteReply(facts, refusal, requestId, lengthOf(refusal.body));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `x-request-id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => {
      if (facts !== undefined) facts.isWhole = socket.writableFinished;
      socket.destroy();
      facts?.end();
    },
  );
}
