/**
 * Receives, inflates and hands on the bodies of requests. All bodies share one budget of memory
 * until they are parsed.
 */
import type { IncomingMessage } from "node:http";
import { turnOfItsOwn } from "../formats/own-turn.js";
import { BodyMemory, readBody, type BodyOwner, type BodyRoom } from "./body.js";
import { BodyOrder } from "./body-order.js";
import { inflate, type InflatedLimits } from "./inflate.js";

/** Most bytes that all bodies may hold together, unless a setting says otherwise. */
export const defaultBodyMemory = 512 * 1024 * 1024;

/** Facts known about a body before it arrives. */
export interface BodyTerms extends InflatedLimits {
  /** The header Content-Encoding. */
  readonly encoding?: string | undefined;
  readonly owner: BodyOwner;
}

export class Bodies {
  readonly #memory: BodyMemory;
  readonly #order = new BodyOrder();

  /** Bytes of the bodies in memory. */
  get heldBytes(): number {
    return this.#memory.heldBytes;
  }

  /** @param isShared whether there may be several tenants: then none has more than half */
  constructor(memoryBytes = defaultBodyMemory, isShared = false) {
    this.#memory = new BodyMemory(memoryBytes, isShared ? Math.floor(memoryBytes / 2) : memoryBytes);
  }

  /** The room of a body whose bytes another part receives. */
  room(owner: BodyOwner): BodyRoom {
    return this.#memory.room(owner);
  }

  /**
   * Calls `read` with the body, and resolves when `read` has ended and all earlier bodies of the
   * connection have been read. Then the body's share of the memory is free again.
   * @throws InferenceError if the body is too large, incomplete or cannot be inflated, or if there
   *   is no room for it now
   */
  async use<T>(
    incoming: IncomingMessage,
    { encoding, owner, ...limits }: BodyTerms,
    read: (body: Buffer) => T | Promise<T>,
  ): Promise<T> {
    const room = this.#memory.room(owner);
    const turn = this.#order.enter(incoming.socket);
    try {
      const received = await readBody(incoming, limits.maxBytes, room);
      const body = encoding === undefined ? received : await inflate(received, encoding, limits, room);
      await turnOfItsOwn(jsonBytesOf(body, limits), body.length);
      const value = await read(body);
      if (!turn.hasCome) await turn.come();
      return value;
    } finally {
      turn.pass();
      room.release();
    }
  }
}

/**
 * Returns how many bytes of the body are JSON: all, unless the header says fewer. Later code
 * refuses a header that says more than the body holds.
 */
export function jsonBytesOf(body: Buffer, { jsonBytes }: Pick<BodyTerms, "jsonBytes">): number {
  return Math.min(jsonBytes ?? body.length, body.length);
}
