/**
 * Connections to the records of a stream, from an index on. A `Reader` can wait for a number of
 * records, and leave. A `SlowReader` takes next to nothing.
 */
import { readEventSource, type SourceEnd } from "./event-source.js";
import { connect, type Socket } from "node:net";

export interface ReadRecords {
  /** The first record is the record at the index that the client asked for. */
  readonly records: readonly string[];
  readonly end: SourceEnd;
}

export class Reader {
  readonly records: string[] = [];
  readonly ended: Promise<ReadRecords>;
  readonly #leaving = new AbortController();
  readonly #most: number;
  #waiting: (() => void)[] = [];
  #end: SourceEnd | undefined;

  /**
   * @param after index of the last record that the client has
   * @param most the client leaves after this many records
   */
  constructor(gateway: string, id: string, after = -1, most = Infinity) {
    this.#most = most;
    this.ended = readEventSource({
      url: `${gateway}/v2/requests/${id}/events`,
      headers: after < 0 ? {} : { "last-event-id": String(after) },
      signal: this.#leaving.signal,
      onEvent: ({ id: index, data }) => this.#take(Number(index), data, after + 1 + this.records.length),
    }).then((end) => {
      this.#end = end;
      this.#wake();
      return { records: this.records, end };
    });
  }

  leave(): void {
    this.#leaving.abort();
  }

  /**
   * Resolves when the client has read this many records.
   * @throws Error if the stream ends before
   */
  async reach(count: number): Promise<void> {
    while (this.records.length < count) {
      if (this.#end !== undefined) {
        const how = JSON.stringify(this.#end);
        throw new Error(`the stream ended after ${this.records.length} of ${count} records: ${how}`);
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #take(index: number, data: string, due: number): boolean {
    if (index !== due) throw new Error(`record ${index} came where ${due} was due`);
    this.records.push(data);
    this.#wake();
    return this.records.length < this.#most;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** A client that takes nothing of a stream's records, or a little at a time. */
export interface SlowReader {
  /** The reader's own port. */
  readonly port: number;
  /** Whether the gateway still holds the connection. */
  readonly isOpen: () => boolean;
  close(): void;
}

const SIP_BYTES = 102;
const SIP_EVERY_MS = 100;

/** Lets the socket's buffers fill up. Resolves when the answer has begun. */
export function readSlowly(gateway: string, id: string, how: "nothing" | "1 KiB/s"): Promise<SlowReader> {
  const { hostname, port } = new URL(gateway);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    let sipping: NodeJS.Timeout | undefined;
    let open = true;
    socket.on("connect", () => socket.write(`GET /v2/requests/${id}/events HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`));
    socket.once("readable", () => {
      socket.read(SIP_BYTES);
      if (how === "1 KiB/s") sipping = setInterval(() => sip(socket), SIP_EVERY_MS);
      resolve({ port: socket.localPort ?? 0, isOpen: () => open, close: () => socket.destroy() });
    });
    socket.on("error", reject);
    socket.on("close", () => {
      open = false;
      clearInterval(sipping);
    });
  });
}

function sip(socket: Socket): void {
  socket.read(SIP_BYTES);
}
