/**
 * Reads the body of an infer or generate request: in this thread, or in the parsing thread if that
 * would take long.
 */
import type { ParseThread } from "./parse-thread.js";
import { readRequest, type Reading, type ReadRequest } from "./read-request.js";

/** Up to this many bytes take some milliseconds to read at the most. */
const largeBytes = 128 * 1024;

export class RequestReader {
  readonly #thread: ParseThread | undefined;

  /** @param thread if absent, this thread parses all bodies */
  constructor(thread?: ParseThread) {
    this.#thread = thread;
  }

  /**
   * Reads a whole body. The caller must not use its memory any more.
   * @param jsonBytes how many bytes of the body are JSON
   * @param stillWanted called before the thread reads a long body; throws if the client has gone
   * @throws InferenceError
   */
  read(body: Buffer, jsonBytes: number, reading: Reading, stillWanted: () => void): ReadRequest | Promise<ReadRequest> {
    if (this.#thread === undefined || bytesToRead(body, jsonBytes, reading) <= largeBytes) {
      return readRequest(body, reading);
    }
    return this.#thread.read(body, reading, stillWanted);
  }
}

/**
 * Returns how many bytes the reader must look at one by one. The bytes of tensors need no look,
 * except the elements of a BYTES tensor; a generator takes only one element.
 */
function bytesToRead(body: Buffer, jsonBytes: number, { path, model }: Reading): number {
  if (model.generator === undefined) {
    const isChecked = model.inputs.some(({ datatype }) => datatype === "BYTES");
    return isChecked ? body.length : jsonBytes;
  }
  // `generate` on a generator is text, which would take as long to come back from the thread as to
  // parse.
  return path === "generate" ? 0 : jsonBytes;
}
