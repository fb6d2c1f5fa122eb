/**
 * Parses plain requests with small bodies on the socket. One such request at a time is read and
 * answered on a connection. With the first bytes that are anything else, the connection goes to
 * node's HTTP server for good, with those bytes, so limits, refusals and pipelining are node's.
 */
import type { Socket } from "node:net";
import type { Reply } from "../formats/reply.js";
import { PieceBuffer, uncountedBytes } from "./body.js";
import { longestPlainHead, readPlainHead, type PlainHead } from "./plain-head.js";
import { writeReply } from "./plain-reply.js";

export interface PlainAnswer {
  readonly reply: Reply;
  readonly requestId: string;
}

/** The requests that are answered without node's server. */
export interface PlainRoute {
  /** Whether the route can answer requests with this head. Says the same each time. */
  takes(head: PlainHead): boolean;
  /**
   * Answers a request whose head the route takes. The promise never rejects.
   * @returns undefined if node's server has to answer
   */
  answer(head: PlainHead, body: Buffer, socket: Socket): Promise<PlainAnswer> | undefined;
}

export interface PlainTimes {
  /** How long a new connection may be silent, in ms. */
  readonly headMs: number;
  /** How long a request may take to arrive, in ms. */
  readonly requestMs: number;
  /** How long a connection may be silent after an answer, in ms. */
  readonly keepAliveMs: number;
}

/** Calls of one connection to the server. */
interface Surroundings {
  readonly route: PlainRoute;
  /** Gives the connection to node's server. */
  readonly toNode: (socket: Socket) => void;
  /** Ends the connection with a refusal. @param reason a code of an error of node's server */
  readonly refuse: (socket: Socket, reason: string) => void;
  /** Whether each answer is the last of its connection. */
  readonly isClosing: () => boolean;
}

export class PlainConnections {
  readonly #surroundings: Omit<Surroundings, "toNode">;
  readonly #times: PlainTimes;
  readonly #open = new Set<PlainConnection>();
  readonly #looking: NodeJS.Timeout;

  /** @param everyMs time between two looks for silent connections */
  constructor(surroundings: Omit<Surroundings, "toNode">, times: PlainTimes, everyMs: number) {
    this.#surroundings = surroundings;
    this.#times = times;
    this.#looking = setInterval(() => this.#look(performance.now()), everyMs).unref();
  }

  get size(): number {
    return this.#open.size;
  }

  add(socket: Socket, toNode: (socket: Socket) => void): void {
    if (socket.destroyed) return;
    const connection = new PlainConnection(socket, { ...this.#surroundings, toNode }, () =>
      this.#open.delete(connection),
    );
    this.#open.add(connection);
  }

  /** Ends the connections on which no request arrives or is answered. */
  closeIdle(): void {
    for (const connection of this.#open) connection.closeIfIdle();
  }

  cutAll(): void {
    for (const connection of this.#open) connection.cut();
  }

  /** Call this when no connection is left. */
  close(): void {
    clearInterval(this.#looking);
  }

  #look(now: number): void {
    for (const connection of this.#open) connection.endIfLate(now, this.#times);
  }
}

const endOfHead = Buffer.from("\r\n\r\n");

class PlainConnection {
  readonly #socket: Socket;
  readonly #surroundings: Surroundings;
  readonly #forget: () => void;
  #state: "new" | "idle" | "arriving" | "answering" = "new";
  /** When the state began, on the clock of `performance.now()`. */
  #since = performance.now();
  /** The last head, which the next request most often repeats, and its text. */
  #head: PlainHead | undefined;
  #text = "";
  /** The body that arrives. */
  #pieces: PieceBuffer | undefined;
  /** Bytes that came behind the request that is being answered. */
  #behind: Buffer | undefined;

  /** @param forget called when the connection has ended or gone to node's server */
  constructor(socket: Socket, surroundings: Surroundings, forget: () => void) {
    this.#socket = socket;
    this.#surroundings = surroundings;
    this.#forget = forget;
    socket.on("data", this.#onData).on("end", this.#onEnd).on("close", forget);
  }

  closeIfIdle(): void {
    if (this.#state === "new" || this.#state === "idle") this.cut();
  }

  cut(): void {
    this.#socket.destroy();
  }

  endIfLate(now: number, { headMs, requestMs, keepAliveMs }: PlainTimes): void {
    const silentMs = now - this.#since;
    if (this.#state === "idle" && silentMs >= keepAliveMs) this.cut();
    const mostMs = this.#state === "new" ? headMs : requestMs;
    if (this.#state !== "idle" && this.#state !== "answering" && silentMs >= mostMs)
      this.#refuse("ERR_HTTP_REQUEST_TIMEOUT");
  }

  readonly #onData = (chunk: Buffer): void => {
    switch (this.#state) {
      case "answering":
        this.#behind = chunk;
        this.#socket.pause();
        return;
      case "arriving":
        this.#addToBody(chunk);
        return;
      default:
        this.#begin(chunk);
    }
  };

  readonly #onEnd = (): void => {
    if (this.#state === "arriving") this.#refuse("HPE_INVALID_EOF_STATE");
    else this.#socket.end();
  };

  /** @param chunk the first bytes of a request */
  #begin(chunk: Buffer): void {
    const end = chunk.indexOf(endOfHead);
    if (end < 0 || end > longestPlainHead) return this.#giveToNode(chunk);
    const text = chunk.toString("latin1", 0, end);
    if (text !== this.#text || this.#head === undefined) {
      const head = readPlainHead(text);
      if (head === undefined || head.length > uncountedBytes || !this.#surroundings.route.takes(head)) {
        return this.#giveToNode(chunk);
      }
      this.#head = head;
      this.#text = text;
    }
    const { length } = this.#head;
    const bodyAt = end + endOfHead.length;
    if (chunk.length - bodyAt > length) return this.#giveToNode(chunk);
    const body = chunk.subarray(bodyAt);
    if (body.length === length) return this.#answer(this.#head, body);
    this.#enter("arriving");
    this.#pieces = new PieceBuffer(length);
    this.#pieces.add(body);
  }

  #addToBody(chunk: Buffer): void {
    const [head, pieces] = [this.#head, this.#pieces];
    if (head === undefined || pieces === undefined) throw new TypeError("a body arrives behind a head");
    const length = pieces.length + chunk.length;
    if (length > head.length) return this.#giveToNode(this.#headBytes(), pieces.bytes(), chunk);
    pieces.add(chunk);
    if (length < head.length) return;
    this.#pieces = undefined;
    this.#answer(head, pieces.bytes());
  }

  #answer(head: PlainHead, body: Buffer): void {
    const answer = this.#surroundings.route.answer(head, body, this.#socket);
    if (answer === undefined) return this.#giveToNode(this.#headBytes(), body);
    this.#enter("answering");
    void answer.then(this.#onAnswer);
  }

  readonly #onAnswer = ({ reply, requestId }: PlainAnswer): void => {
    const socket = this.#socket;
    if (!socket.writable) return;
    const isLast = this.#surroundings.isClosing();
    writeReply(socket, reply, requestId, isLast);
    if (isLast) return socket.destroySoon();
    this.#enter("idle");
    if (this.#behind !== undefined) this.#giveToNode(this.#behind);
    else if (socket.writableNeedDrain) {
      // The next request waits until the client has read more of the answers.
      socket.pause();
      socket.once("drain", () => socket.resume());
    }
  };

  #enter(state: "idle" | "arriving" | "answering"): void {
    this.#state = state;
    this.#since = performance.now();
  }

  /** The bytes of the head that was read last. */
  #headBytes(): Buffer {
    return Buffer.concat([Buffer.from(this.#text, "latin1"), endOfHead]);
  }

  #refuse(reason: string): void {
    this.#leave();
    this.#surroundings.refuse(this.#socket, reason);
  }

  /** @param bytes all that came and was not answered */
  #giveToNode(...bytes: Buffer[]): void {
    const socket = this.#socket;
    this.#leave();
    socket.pause();
    this.#surroundings.toNode(socket);
    socket.unshift(bytes.length === 1 ? bytes[0] : Buffer.concat(bytes));
    socket.resume();
  }

  #leave(): void {
    this.#socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#forget);
    this.#forget();
  }
}
