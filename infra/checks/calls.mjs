/**
 * Tells which functions of a process run, in all of its threads, by Chrome's debugging protocol.
 */
import { WebSocket } from "ws";

/**
 * @typedef {{ readonly url: string, readonly functions: readonly Called[] }} Script
 * @typedef {{ readonly functionName: string, readonly ranges: readonly Range[] }} Called
 * @typedef {{ sessionId: string, message: string }} OfThread
 * @typedef {{ id?: number, method?: string, params?: OfThread, result?: any }} Message
 * @typedef {{ readonly startOffset: number, readonly count: number }} Range
 */

export class Calls {
  /** @type {Map<number, (result: { result: readonly Script[] }) => void>} */
  #pending = new Map();
  /** @type {Set<string>} */
  #threads = new Set();
  #last = 0;
  #socket;

  /**
   * @param {string} inspector the address that a process started with `--inspect` prints
   */
  constructor(inspector) {
    this.#socket = new WebSocket(inspector);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.on("message", (/** @type {ArrayBuffer} */ data) =>
      this.#hear(JSON.parse(new TextDecoder().decode(data))),
    );
  }

  async open() {
    await new Promise((settle, fail) => this.#socket.once("open", settle).once("error", fail));
    await this.#watch(undefined);
    await this.#ask(undefined, "NodeWorker.enable", { waitForDebuggerOnStart: false });
  }

  /**
   * The functions that ran since the last call, as `file#name@position`, without code that ran only
   * because Node loaded a file.
   *
   * @param {string} base the beginning of the files' addresses
   */
  async take(base) {
    const threads = [undefined, ...this.#threads];
    const taken = await Promise.all(threads.map((thread) => this.#ask(thread, "Profiler.takePreciseCoverage", {})));
    return taken
      .flatMap(({ result }) => result)
      .filter(({ url }) => url.startsWith(base))
      .flatMap(({ url, functions }) =>
        functions.flatMap(({ functionName, ranges: [range] }) =>
          range !== undefined && range.count > 0 && range.startOffset > 0
            ? [`${url.slice(base.length)}#${functionName}@${range.startOffset}`]
            : [],
        ),
      );
  }

  /** @param {string | undefined} thread */
  async #watch(thread) {
    await this.#ask(thread, "Profiler.enable", {});
    await this.#ask(thread, "Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }

  /**
   * @param {string | undefined} thread undefined: the main thread
   * @param {string} method
   * @param {object} params
   * @returns {Promise<{ result: readonly Script[] }>}
   */
  #ask(thread, method, params) {
    const id = (this.#last += 1);
    const message = JSON.stringify({ id, method, params });
    const answered = new Promise((settle) => this.#pending.set(id, settle));
    if (thread === undefined) this.#socket.send(message);
    else {
      const wrapped = { sessionId: thread, message };
      const outer = (this.#last += 1);
      this.#socket.send(JSON.stringify({ id: outer, method: "NodeWorker.sendMessageToWorker", params: wrapped }));
    }
    return answered;
  }

  /** @param {Message} message */
  #hear({ id, method, params, result }) {
    if (method === "NodeWorker.attachedToWorker" && params !== undefined) {
      void this.#watch(params.sessionId).then(() => this.#threads.add(params.sessionId));
    } else if (method === "NodeWorker.receivedMessageFromWorker" && params !== undefined) {
      this.#hear(JSON.parse(params.message));
    } else if (id !== undefined) {
      this.#pending.get(id)?.(result);
      this.#pending.delete(id);
    }
  }
}
