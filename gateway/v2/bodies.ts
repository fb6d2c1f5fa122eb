/**
 * From a request's bytes to what they ask for. All bodies share one budget of memory until they are
 * read, and what takes long to parse is parsed in a thread of its own.
 */
import type { IncomingMessage } from "node:http";
import { InferenceError } from "#shared/errors.js";
import { readBody } from "./body.js";
import { BodyMemory } from "./body-memory.js";
import { inflate, type InflatedLimits } from "./inflate.js";
import { ownTurn } from "./own-turn.js";
import type { ParseThread } from "./parse-thread.js";
import { readRequest, type Reading, type ReadRequest } from "./read-request.js";

export const defaultBodyMemory = 512 * 1024 * 1024;

/** JSON of this length takes some milliseconds at the most. */
const largeBytes = 128 * 1024;
/** And of this length less than one. */
const smallBytes = 16 * 1024;

export interface Terms extends InflatedLimits {
  readonly encoding?: string | undefined;
}

export class Bodies {
  readonly #memory: BodyMemory;
  readonly #thread: ParseThread | undefined;

  /** @param thread without it, all is parsed here. */
  constructor(memoryBytes = defaultBodyMemory, thread?: ParseThread) {
    this.#memory = new BodyMemory(memoryBytes);
    this.#thread = thread;
  }

  /** @throws InferenceError */
  async use<T>(
    incoming: IncomingMessage,
    { encoding, ...limits }: Terms,
    read: (body: Buffer) => T | Promise<T>,
  ): Promise<T> {
    const room = this.#memory.room();
    try {
      const received = await readBody(incoming, limits.maxBytes, room);
      const body = encoding === undefined ? received : await inflate(received, encoding, limits, room);
      if ((limits.jsonBytes ?? body.length) > smallBytes) await ownTurn();
      return await read(body);
    } finally {
      room.release();
    }
  }

  /** @throws InferenceError */
  readRequest(incoming: IncomingMessage, terms: Terms, reading: Reading): Promise<ReadRequest> {
    return this.use(incoming, terms, (body) => {
      const isLarge = (terms.jsonBytes ?? body.length) > largeBytes;
      // A generator's body is text, which takes as long to come back from a thread as to parse.
      if (this.#thread === undefined || !isLarge || reading.model.generator !== undefined) {
        return readRequest(body, reading);
      }
      return this.#thread.read(body, reading, () => {
        if (incoming.socket.destroyed) throw new InferenceError("cancelled", "the client is gone");
      });
    });
  }
}
