/**
 * Receives the body of an infer or generate request and reads what it asks for: in this thread, or
 * in the parsing thread where that would take long.
 */
import type { IncomingMessage } from "node:http";
import { fixedError } from "#shared/errors.js";
import { jsonBytesOf, type Bodies, type BodyTerms } from "../../http/bodies.js";
import type { ParseThread } from "./parse-thread.js";
import { readRequest, type Reading, type ReadRequest } from "./read-request.js";

/** Up to this many bytes are read in some milliseconds at the most. */
const largeBytes = 128 * 1024;

export class RequestReader {
  readonly #bodies: Bodies;
  readonly #thread: ParseThread | undefined;

  /** @param thread where it is absent, all bodies are parsed in this thread */
  constructor(bodies: Bodies, thread?: ParseThread) {
    this.#bodies = bodies;
    this.#thread = thread;
  }

  /** @throws InferenceError */
  read(incoming: IncomingMessage, terms: BodyTerms, reading: Reading): Promise<ReadRequest> {
    const stillWanted = (): void => {
      if (incoming.socket.destroyed) throw fixedError("cancelled", "clientGone");
    };
    return this.#bodies.use(incoming, terms, (body) => this.readBody(body, terms, reading, stillWanted));
  }

  /**
   * Reads a body that has been received. Its memory is not the caller's any more.
   * @param stillWanted is called before a long body is read, and throws where nobody waits any more
   * @throws InferenceError
   */
  readBody(
    body: Buffer,
    terms: Pick<BodyTerms, "jsonBytes">,
    reading: Reading,
    stillWanted: () => void,
  ): ReadRequest | Promise<ReadRequest> {
    if (this.#thread === undefined || bytesToRead(body, terms, reading) <= largeBytes) {
      return readRequest(body, reading);
    }
    return this.#thread.read(body, reading, stillWanted);
  }
}

/**
 * Returns how many bytes have to be looked at one by one. The bytes of tensors are taken as they
 * are, except that each element of a BYTES tensor is checked; a generator takes only one element.
 */
function bytesToRead(body: Buffer, terms: Pick<BodyTerms, "jsonBytes">, { path, model }: Reading): number {
  if (model.generator === undefined) {
    const isChecked = model.inputs.some(({ datatype }) => datatype === "BYTES");
    return isChecked ? body.length : jsonBytesOf(body, terms);
  }
  // `generate` on a generator is text, which would take as long to come back from the thread as it
  // takes to parse.
  return path === "generate" ? 0 : jsonBytesOf(body, terms);
}
