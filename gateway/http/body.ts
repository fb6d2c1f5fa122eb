/**
 * Receives the body of one request, piece by piece, within two limits: one for this body, and one
 * for the memory of all bodies together. Memory never exceeds a limit, even if the head of the
 * request declares more.
 */
import type { IncomingMessage } from "node:http";
import { fixedError, InferenceError } from "#shared/errors.js";
import { bodyTooLarge } from "../formats/limits.js";

/**
 * A piece below this many bytes is tiny. Many tiny chunks take far more time than their bytes do. A
 * slow network makes small pieces too, because Node emits each read from the socket, but not tens
 * of thousands of tiny pieces.
 */
const tinyPieceBytes = 512;
const maxTinyPieces = 65_536;

/** What tells a client that waits for it (`Expect: 100-continue`) to send the body. */
const invitations = new WeakMap<IncomingMessage, () => void>();

/** @param invite called when a handler wants the body; until then a refusal spares it */
export function inviteBody(incoming: IncomingMessage, invite: () => void): void {
  invitations.set(incoming, invite);
}

/** Call this before the body is read otherwise than by `readBody`. */
export function wantBody(incoming: IncomingMessage): void {
  invitations.get(incoming)?.();
  invitations.delete(incoming);
}

/**
 * @param room grows as pieces come
 * @throws InferenceError, and the rest of the body flows away unread
 */
export function readBody(incoming: IncomingMessage, maxBytes: number, room: BodyRoom): Promise<Buffer> {
  const declared = Number(incoming.headers["content-length"] ?? maxBytes);
  if (declared > maxBytes) {
    incoming.resume();
    return Promise.reject(bodyTooLarge(maxBytes));
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
      if (bytes > maxBytes) return refuse(bodyTooLarge(maxBytes));
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
    // Only an incomplete body gets here, because `settle` removes this listener: the client left
    // early or took longer than the server waits.
    const onClose = (): void => {
      settle();
      reject(fixedError("cancelled", "bodyIncomplete"));
    };
    // A client that has left sends nothing more, and its request says so only once.
    if (incoming.destroyed && !incoming.readableEnded) return onClose();
    wantBody(incoming);
    incoming.on("data", onData).on("end", onEnd).on("close", onClose).on("error", ignore);
  });
}

/** Ignores `error`, because `close` follows and counts. */
function ignore(): void {}

/** Time in ms for the rest of an unread body to arrive, before the connection ends. */
const unreadMs = 500;

/** Ends a request whose answer was sent before its body was read to the end. */
export function endUnread(incoming: IncomingMessage): void {
  incoming.resume();
  setTimeout(() => {
    if (!incoming.readableEnded) incoming.socket.destroySoon();
  }, unreadMs).unref();
}

const largeBytes = 1024 * 1024;
/**
 * Memory of `largeBytes` or more grows by this factor at a time. Fresh memory of that size occupies
 * no RAM until written to, so large steps cost nothing.
 */
const largeGrowth = 8;
const growth = 2;

/**
 * Puts the pieces of a body together as they come. Copies each piece at once: a held piece of one
 * byte takes hundreds, and large pieces would lie in memory twice at the end. Only a first piece
 * stays without a copy, unless tiny, because most bodies have one piece.
 */
export class PieceBuffer {
  length = 0;
  readonly #expected: number;
  /** The received bytes, with room for more behind them. */
  #whole: Buffer = Buffer.alloc(0);

  /** @param expected the declared length, or else the maximum; the body never exceeds it */
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

/** The budget does not count bodies up to this length, so there is always room for such a body. */
export const uncountedBytes = 64 * 1024;

/** Whose a body is. */
export interface BodyOwner {
  readonly tenant: string;
  /** Most bytes of the tenant's bodies together; absent: as the gateway says. */
  readonly most?: number | undefined;
}

/**
 * Limits the memory of all bodies together while the gateway receives, inflates and parses them.
 * Each body has a limit too, but many large bodies at a time would fill the memory.
 */
export class BodyMemory {
  readonly #limit: number;
  readonly #mostOfTenant: number;
  #held = 0;
  /** The bytes of each tenant that has any. */
  readonly #heldBy = new Map<string, number>();

  /**
   * @param limit in bytes
   * @param mostOfTenant of the bodies of one tenant, in bytes
   */
  constructor(limit: number, mostOfTenant = limit) {
    this.#limit = limit;
    this.#mostOfTenant = mostOfTenant;
  }

  /** Bytes of all bodies together. */
  get heldBytes(): number {
    return this.#held;
  }

  /** Returns the room of one body. The caller releases it. */
  room({ tenant, most = this.#mostOfTenant }: BodyOwner): BodyRoom {
    let held = 0;
    const hold = (bytes: number) => {
      const ofTenant = (this.#heldBy.get(tenant) ?? 0) + bytes - held;
      if (ofTenant > 0) this.#heldBy.set(tenant, ofTenant);
      else this.#heldBy.delete(tenant);
      this.#held += bytes - held;
      held = bytes;
    };
    return {
      grow: (bytes) => {
        if (bytes <= uncountedBytes) return;
        const more = bytes - held;
        if (this.#held + more > this.#limit) throw tooMuch("request bodies", this.#limit);
        if ((this.#heldBy.get(tenant) ?? 0) + more > most) throw tooMuch("the tenant's request bodies", most);
        hold(bytes);
      },
      release: () => {
        if (held > 0) hold(0);
      },
    };
  }
}

function tooMuch(whose: string, limit: number): InferenceError {
  const message = `${whose} together are larger than the limit of ${limit} bytes, try again later`;
  return new InferenceError("unavailable", message);
}

export interface BodyRoom {
  /**
   * @param bytes total that the body holds from now on
   * @throws InferenceError `unavailable` if all bodies, or the tenant's, would exceed a limit
   */
  grow(bytes: number): void;
  release(): void;
}
