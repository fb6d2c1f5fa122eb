/**
 * Receives the body of an infer or generate request and reads the request: in this thread, or in
 * the parsing thread if that would take long.
 */
import type { IncomingMessage } from "node:http";
import { fixedError } from "#shared/errors.js";
import { jsonBytesOf, type Bodies, type BodyTerms } from "../../http/bodies.js";
import type { ParseThread } from "./parse-thread.js";
import { readRequest, type Reading, type ReadRequest } from "./read-request.js";

/** Up to this many bytes take some milliseconds to read at the most. */
const largeBytes = 128 * 1024;

export class RequestReader {
  readonly #bodies: Bodies;
  readonly #thread: ParseThread | undefined;

  /** @param thread if absent, this thread parses all bodies */
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
   * Reads a received body. The caller must not use its memory any more.
   * @param stillWanted called before the thread reads a long body; throws if the client has gone
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
 * Returns how many bytes the reader must look at one by one. The bytes of tensors need no look,
 * except the elements of a BYTES tensor; a generator takes only one element.
 */
function bytesToRead(body: Buffer, terms: Pick<BodyTerms, "jsonBytes">, { path, model }: Reading): number {
  if (model.generator === undefined) {
    const isChecked = model.inputs.some(({ datatype }) => datatype === "BYTES");
    return isChecked ? body.length : jsonBytesOf(body, terms);
  }
  // `generate` on a generator is text, which would take as long to come back from the thread as to
  // parse.
  return path === "generate" ? 0 : jsonBytesOf(body, terms);
}
