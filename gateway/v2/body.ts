/** A request's whole body, read from node's message and never held beyond the limit, whatever its head declares. */
import type { IncomingMessage } from "node:http";
import { InferenceError } from "#shared/errors.js";
import type { BodyRoom } from "./body-memory.js";
import { Gathered } from "./gathered.js";

/**
 * Many tiny chunks take far more time than their bytes. Node hands on what one read from the socket
 * held, so a slow network also makes pieces, but not smaller than this by the ten thousand.
 */
const tinyPieceBytes = 512;
const maxTinyPieces = 65_536;

/** @throws InferenceError and leaves the rest of the body to flow away unread */
export function readBody(incoming: IncomingMessage, maxBytes: number, room: BodyRoom): Promise<Buffer> {
  const declared = Number(incoming.headers["content-length"] ?? maxBytes);
  if (declared > maxBytes) {
    incoming.resume();
    return Promise.reject(tooLarge(maxBytes));
  }
  return new Promise((resolve, reject) => {
    const gathered = new Gathered(declared);
    let tinyPieces = 0;
    const settle = (): void => {
      incoming.off("data", onData).off("end", onEnd).off("close", onClose);
    };
    const refuse = (error: InferenceError): void => {
      settle();
      incoming.resume();
      reject(error);
    };
    const onData = (piece: Buffer): void => {
      const bytes = gathered.length + piece.length;
      if (piece.length < tinyPieceBytes) tinyPieces++;
      if (bytes > maxBytes) return refuse(tooLarge(maxBytes));
      if (tinyPieces > maxTinyPieces) {
        const text = `request body has more than ${maxTinyPieces} chunks of a few bytes`;
        return refuse(new InferenceError("payload_too_large", text));
      }
      try {
        room.grow(bytes);
      } catch (error) {
        return refuse(error as InferenceError);
      }
      gathered.add(piece);
    };
    const onEnd = (): void => {
      settle();
      resolve(gathered.bytes());
    };
    // After an end this is not heard; before it, the client went away or took longer than the server waits.
    const onClose = (): void => {
      settle();
      reject(new InferenceError("cancelled", "the connection closed before the request's body was complete"));
    };
    incoming.on("data", onData).on("end", onEnd).on("close", onClose).on("error", ignore);
  });
}

/** `close` follows and is what counts. */
function ignore(): void {}

function tooLarge(maxBytes: number): InferenceError {
  return new InferenceError("payload_too_large", `request body is larger than the limit of ${maxBytes} bytes`);
}
