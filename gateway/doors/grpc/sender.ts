/**
 * Sends the messages of a stream as fast as its client reads them. A client that reads nothing for
 * 30 s loses its stream (`sessions.ts`).
 */
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { Signal } from "#shared/signal.js";
import type { Exchange } from "./exchange.js";

/** With so many bytes of answers waiting, the stream's requests are not read on. */
const MOST_WAITING_BYTES = 1024 * 1024;

export class StreamSender {
  readonly #call: ServerDuplexStream<Buffer, Buffer>;
  readonly #exchange: Exchange;
  /** Resolves when the client takes more; undefined while it does. */
  #full: Promise<void> | undefined;
  #waiting = 0;
  readonly #less = new Signal();

  constructor(call: ServerDuplexStream<Buffer, Buffer>, exchange: Exchange) {
    this.#call = call;
    this.#exchange = exchange;
    call.once("close", () => this.#less.notify());
  }

  /** Resolves when the message has left, or when the client has. */
  async send(message: Buffer): Promise<void> {
    const sent = this.hold(message);
    while (this.#full !== undefined) await this.#full;
    sent();
    if (this.#call.destroyed || this.#call.writableEnded) return;
    this.#exchange.bytesOut += message.length;
    if (this.#call.write(message)) return;
    this.#full = this.#drained();
    await this.#full;
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
      this.#less.notify();
    };
  }

  /** Resolves when few enough bytes wait. */
  async room(): Promise<void> {
    while (this.#waiting > MOST_WAITING_BYTES && !this.#call.destroyed) await this.#less.wait(Infinity);
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const call = this.#call;
      const end = () => {
        call.off("drain", end).off("close", end);
        this.#full = undefined;
        resolve();
      };
      call.once("drain", end).once("close", end);
      if (call.destroyed) end();
    });
  }
}
