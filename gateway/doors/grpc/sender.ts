/**
 * Sends the messages of a stream as fast as its client reads them. A client that reads nothing for
 * 30 s loses its stream (`sessions.ts`).
 */
import { EventEmitter, once } from "node:events";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import type { Exchange } from "./exchange.js";

/** With so many bytes of answers waiting, the stream's requests are not read on. */
const MOST_WAITING_BYTES = 1024 * 1024;

export class StreamSender {
  readonly #call: ServerDuplexStream<Buffer, Buffer>;
  readonly #exchange: Exchange;
  /** Bytes of all messages that the client's connection has not taken. */
  #waiting = 0;
  /** Bytes of those that have been written. */
  #written = 0;
  readonly #events = new EventEmitter<{ less: [] }>().setMaxListeners(0);

  constructor(call: ServerDuplexStream<Buffer, Buffer>, exchange: Exchange) {
    this.#call = call;
    this.#exchange = exchange;
    // No write calls back any more.
    call.once("close", () => this.#events.emit("less"));
  }

  /** Resolves when the message is on its way, or when the client has left. */
  async send(message: Buffer): Promise<void> {
    const { length } = message;
    const sent = this.hold(message);
    while (this.#written > MOST_WAITING_BYTES && !this.#isOver) await once(this.#events, "less");
    if (this.#isOver) return sent();
    this.#exchange.bytesOut += length;
    this.#written += length;
    this.#call.write(message, () => {
      this.#written -= length;
      sent();
    });
  }

  /**
   * Counts a message that waits for its turn.
   * @returns a function to call when it waits no longer
   */
  hold(message: Buffer | undefined): () => void {
    const { length = 0 } = message ?? {};
    this.#waiting += length;
    return () => {
      this.#waiting -= length;
      this.#events.emit("less");
    };
  }

  /** Resolves when few enough bytes wait. */
  async room(): Promise<void> {
    while (this.#waiting > MOST_WAITING_BYTES && !this.#isOver) await once(this.#events, "less");
  }

  get #isOver(): boolean {
    return this.#call.destroyed || this.#call.writableEnded;
  }
}
