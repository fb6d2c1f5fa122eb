/**
 * A keep-alive HTTP/1.1 connection, with a single request at a time and as little code as possible.
 * On a machine with two cores, Node's own client would take more CPU time than the measured
 * gateway.
 */
import { connect, type Socket } from "node:net";

export interface Answer {
  readonly status: number;
  /** The whole body. The binary tensors begin at `tensorsAt`. */
  readonly body: Buffer;
  readonly tensorsAt: number;
}

const NOTHING: Buffer = Buffer.alloc(0);

export class Connection {
  readonly #socket: Socket;
  readonly #onAnswer: (answer: Answer) => void;
  /** The bytes of an answer that is not complete yet. */
  #received = NOTHING;

  private constructor(socket: Socket, onAnswer: (answer: Answer) => void, onFault: (error: Error) => void) {
    this.#socket = socket;
    this.#onAnswer = onAnswer;
    socket.on("data", (chunk) => this.#take(chunk));
    socket.on("error", onFault);
    socket.on("close", () => onFault(new Error("the gateway closed a connection")));
  }

  static open(port: number, onAnswer: (answer: Answer) => void, onFault: (error: Error) => void): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => {
        socket.off("error", reject);
        resolve(new Connection(socket, onAnswer, onFault));
      });
      socket.once("error", reject);
    });
  }

  send(request: Buffer): void {
    this.#socket.write(request);
  }

  /** Ends the connection, even if an answer is still due. */
  close(): void {
    this.#socket.removeAllListeners("close").destroy();
  }

  #take(chunk: Buffer): void {
    const bytes = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = bytes.indexOf("\r\n\r\n");
    const head = headEnd === -1 ? "" : bytes.toString("latin1", 0, headEnd).toLowerCase();
    const bodyAt = headEnd + 4;
    const end = bodyAt + header(head, "\r\ncontent-length: ");
    if (headEnd === -1 || bytes.length < end) {
      this.#received = bytes;
      return;
    }
    this.#received = bytes.subarray(end);
    this.#onAnswer({
      status: Number(head.slice(9, 12)),
      body: bytes.subarray(bodyAt, end),
      tensorsAt: header(head, "\r\ninference-header-content-length: "),
    });
  }
}

/** @returns the header's number; 0 if the header is missing */
function header(head: string, name: string): number {
  const at = head.indexOf(name);
  return at === -1 ? 0 : Number.parseInt(head.slice(at + name.length, at + name.length + 10), 10);
}
