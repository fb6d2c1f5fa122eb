/**
 * Receives the body of one request, piece by piece, within two limits: its own, and what all bodies
 * may hold together. Nothing is held beyond a limit, whatever the request's head declares.
 */
import type { IncomingMessage } from "node:http";
import { fixedError, InferenceError } from "#shared/errors.js";

/**
 * Many tiny chunks take far more time than their bytes do. Node hands on what one read from the
 * socket held, so a slow network makes pieces too, but not tens of thousands below this size.
 */
const tinyPieceBytes = 512;
const maxTinyPieces = 65_536;

/**
 * @param room is grown as pieces come
 * @throws InferenceError and leaves the rest of the body to flow away unread
 */
export function readBody(incoming: IncomingMessage, maxBytes: number, room: BodyRoom): Promise<Buffer> {
  const declared = Number(incoming.headers["content-length"] ?? maxBytes);
  if (declared > maxBytes) {
    incoming.resume();
    return Promise.reject(tooLarge(maxBytes));
  }
  return new Promise((resolve, reject) => {
    const pieces = new PieceBuffer(declared);
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
      const bytes = pieces.length + piece.length;
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
      pieces.add(piece);
    };
    const onEnd = (): void => {
      settle();
      resolve(pieces.bytes());
    };
    // This listener is removed at the end, so here the client went away too early, or took longer
    // than the server waits.
    const onClose = (): void => {
      settle();
      reject(fixedError("cancelled", "bodyIncomplete"));
    };
    incoming.on("data", onData).on("end", onEnd).on("close", onClose).on("error", ignore);
  });
}

/** An error is followed by `close`, which is what counts. */
function ignore(): void {}

function tooLarge(maxBytes: number): InferenceError {
  return new InferenceError("payload_too_large", `request body is larger than the limit of ${maxBytes} bytes`);
}

/** The rest of an unread body may come for this long, in ms; then the connection ends. */
const unreadMs = 500;

/** Ends a request that is answered although its body has not been read to the end. */
export function endUnread(incoming: IncomingMessage): void {
  incoming.resume();
  setTimeout(() => {
    if (!incoming.readableEnded) incoming.socket.destroySoon();
  }, unreadMs).unref();
}

const largeBytes = 1024 * 1024;
/**
 * Memory of `largeBytes` or more grows by this factor at a time. Fresh memory of that size takes no
 * room until it is written to, so the large steps cost nothing.
 */
const largeGrowth = 8;
const growth = 2;

/**
 * Puts the pieces of a body together as they come. Each is copied at once: a piece of one byte that
 * is held takes hundreds, and large ones would lie in memory twice at the end. Only a first piece
 * that is not tiny is kept as it is, since most bodies have one piece.
 */
export class PieceBuffer {
  length = 0;
  readonly #expected: number;
  /** Begins with what there is so far; the rest is room for more. */
  #whole: Buffer = Buffer.alloc(0);

  /** @param expected the length as declared, or the most that there may be; never exceeded */
  constructor(expected: number) {
    this.#expected = expected;
  }

  add(piece: Buffer): void {
    const length = this.length + piece.length;
    if (this.length === 0 && piece.length >= tinyPieceBytes) this.#whole = piece;
    else {
      if (length > this.#whole.length) this.#enlarge(length);
      piece.copy(this.#whole, this.length);
    }
    this.length = length;
  }

  bytes(): Buffer {
    return this.#whole.subarray(0, this.length);
  }

  #enlarge(needed: number): void {
    const wished = needed * (needed < largeBytes ? growth : largeGrowth);
    const whole = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(this.#expected, wished)));
    this.#whole.copy(whole, 0, 0, this.length);
    this.#whole = whole;
  }
}

/** Bodies up to this length are not counted, so there is always room for them. */
const uncountedBytes = 64 * 1024;

/**
 * Limits what bodies hold together while they are received, inflated and parsed. Each has its own
 * limit, but many large ones at a time would take all memory.
 */
export class BodyMemory {
  readonly #limit: number;
  #held = 0;

  /** @param limit in bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the room of one body, which the caller releases. */
  room(): BodyRoom {
    let held = 0;
    return {
      grow: (bytes) => {
        if (bytes <= uncountedBytes) return;
        if (this.#held + bytes - held > this.#limit) {
          throw new InferenceError(
            "unavailable",
            `request bodies together are larger than the limit of ${this.#limit} bytes, try again later`,
          );
        }
        this.#held += bytes - held;
        held = bytes;
      },
      release: () => {
        this.#held -= held;
        held = 0;
      },
    };
  }
}

export interface BodyRoom {
  /**
   * @param bytes how many the body holds from now on
   * @throws InferenceError `unavailable` where all bodies together would hold more than the limit
   */
  grow(bytes: number): void;
  release(): void;
}
