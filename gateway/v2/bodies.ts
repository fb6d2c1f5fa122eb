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

/** What is read of this length takes some milliseconds at the most. */
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
      if (jsonBytesOf(body, limits) > smallBytes) await ownTurn();
      return await read(body);
    } finally {
      room.release();
    }
  }

  /** @throws InferenceError */
  readRequest(incoming: IncomingMessage, terms: Terms, reading: Reading): Promise<ReadRequest> {
    return this.use(incoming, terms, (body) => {
      if (this.#thread === undefined || bytesToRead(body, terms, reading) <= largeBytes) {
        return readRequest(body, reading);
      }
      return this.#thread.read(body, reading, () => {
        if (incoming.socket.destroyed) throw new InferenceError("cancelled", "the client is gone");
      });
    });
  }
}

/** All of the body, unless its head says less. What it says beyond the body is refused later. */
function jsonBytesOf(body: Buffer, { jsonBytes }: Terms): number {
  return Math.min(jsonBytes ?? body.length, body.length);
}

/**
 * How much has to be looked at byte by byte. Tensors' bytes are taken as they are, but each element
 * of BYTES is checked; a generator takes only one.
 */
function bytesToRead(body: Buffer, terms: Terms, { path, model }: Reading): number {
  if (model.generator === undefined) {
    const isChecked = model.inputs.some(({ datatype }) => datatype === "BYTES");
    return isChecked ? body.length : jsonBytesOf(body, terms);
  }
  // A generator's `generate` is text, which takes as long to come back from a thread as to parse.
  return path === "generate" ? 0 : jsonBytesOf(body, terms);
}
