/**
 * A keep-alive connection that asks for a single stream at a time, and keeps all bytes with their
 * times. The recorder searches the bytes only for the end.
 */
import { connect, type Socket } from "node:net";
import type { Arrival } from "./events.js";

export interface Recording {
  readonly sentAt: number;
  readonly arrivals: readonly Arrival[];
}

export interface RecorderHears {
  ended(recording: Recording): void;
  failed(error: Error): void;
  /** Called for each arrival. */
  arrived?(arrival: Arrival): void;
}

/** The empty chunk at the end of a body, with the end of the chunk before. */
const END = "\n0\r\n\r\n";

export class Recorder {
  readonly #socket: Socket;
  readonly #hears: RecorderHears;
  #sentAt = 0;
  #arrivals: Arrival[] = [];
  /** The last bytes that came. */
  #tail = "";

  private constructor(socket: Socket, hears: RecorderHears) {
    this.#socket = socket;
    this.#hears = hears;
    socket.on("data", (bytes) => this.#take({ at: performance.now(), bytes }));
    socket.on("error", (error) => hears.failed(error));
    socket.on("close", () => hears.failed(new Error("the gateway closed a connection")));
  }

  static open(port: number, hears: RecorderHears): Promise<Recorder> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => {
        socket.off("error", reject);
        resolve(new Recorder(socket, hears));
      });
      socket.once("error", reject);
    });
  }

  send(request: Buffer): void {
    this.#sentAt = performance.now();
    this.#socket.write(request);
  }

  #take(arrival: Arrival): void {
    const { bytes } = arrival;
    this.#arrivals.push(arrival);
    if (this.#arrivals.length === 1 && !bytes.toString("latin1", 0, 16).startsWith("HTTP/1.1 200 "))
      return this.#hears.failed(new Error(`the gateway answered ${bytes.toString("utf8", 0, 2_000)}`));
    this.#hears.arrived?.(arrival);
    this.#tail = (this.#tail + bytes.toString("latin1", Math.max(0, bytes.length - END.length))).slice(-END.length);
    if (this.#tail !== END) return;
    const arrivals = this.#arrivals;
    this.#arrivals = [];
    this.#tail = "";
    this.#hears.ended({ sentAt: this.#sentAt, arrivals });
  }
}

/** The bytes of a request for a greedy answer with this many tokens. */
export function completionRequest(model: string, prompt: readonly number[], tokens: number): Buffer {
  const body = JSON.stringify({
    model,
    prompt,
    max_tokens: tokens,
    temperature: 0,
    seed: 1,
    ignore_eos: true,
    stream: true,
  });
  const head =
    `POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.from(head + body);
}
