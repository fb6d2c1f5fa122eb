/**
 * Parses plain requests with small bodies on the socket. One such request at a time is read and
 * answered on a connection. With the first bytes that are anything else, the connection goes to
 * node's HTTP server for good, with those bytes; from then on limits, refusals and pipelining are
 * node's.
 */
import type { Socket } from "node:net";
import type { Client } from "../admission/inference.js";
import { lengthOf, type Reply } from "../formats/reply.js";
import { noteReply, type AccessLog, type AnswerFacts } from "../facts/answer-facts.js";
import { PieceBuffer, uncountedBytes } from "./body.js";
import { countRefusal, type HttpCounts } from "./counts.js";
import { longestPlainHead, mayBecomePlain, readPlainHead, type PlainHead } from "./plain-head.js";
import { writeReply } from "./plain-reply.js";

export interface PlainAnswer {
  readonly reply: Reply;
  readonly requestId: string;
  /** The model of the request; absent if nobody counts its refusals. */
  readonly model?: string;
}

/** Answers a request by its body. The promise never rejects. */
export type Answering = (body: Buffer, client: Client) => Promise<PlainAnswer>;

/** The requests that are answered without node's server. */
export interface PlainRoute {
  /** Whether the route is for requests with this head; says the same each time. */
  takes(head: PlainHead): boolean;
  /** The pattern of the path of a head that the route takes. */
  routeOf(head: PlainHead): string;
  /**
   * Finds the answer to requests with a head that the route takes.
   * @returns undefined if node's server has to answer now, perhaps before the body has come; a
   * promise, which never rejects, if the caller must ask again after it
   */
  find(head: PlainHead, facts?: AnswerFacts): Answering | Promise<void> | undefined;
}

export interface PlainTimes {
  /** How long a new connection may be silent, or a head may take to arrive, in ms. */
  readonly headMs: number;
  /** How long a body may take to arrive, in ms. */
  readonly requestMs: number;
  /** How long a connection may be silent after an answer, in ms. */
  readonly keepAliveMs: number;
}

/** Calls of a connection to the server. */
export interface Surroundings {
  readonly route: PlainRoute;
  /** @returns undefined if a request may begin now, else a promise that never rejects */
  readonly turn?: ((head: PlainHead) => Promise<void> | undefined) | undefined;
  /** Ends the connection with a refusal. @param reason a code of an error of node's server */
  readonly refuse: (socket: Socket, reason: string) => void;
  /** Called with each failure that is a bug. */
  readonly onFailure: (error: unknown) => void;
  /** Absent if nobody counts. */
  readonly counts?: HttpCounts | undefined;
  /** Whether each answer is the last of its connection. */
  readonly isClosing: () => boolean;
  readonly access?: AccessLog | undefined;
}

/**
 * Gives a connection to node's server.
 * @param hadTurn whether the request that comes next has had its turn
 */
type ToNode = (socket: Socket, hadTurn: boolean) => void;

export class PlainConnections {
  readonly #surroundings: Surroundings;
  readonly #times: PlainTimes;
  readonly #open = new Set<PlainConnection>();
  readonly #looking: NodeJS.Timeout;

  /** @param everyMs time between two looks for silent connections */
  constructor(surroundings: Surroundings, times: PlainTimes, everyMs: number) {
    this.#surroundings = surroundings;
    this.#times = times;
    this.#looking = setInterval(() => this.#look(performance.now()), everyMs).unref();
  }

  get size(): number {
    return this.#open.size;
  }

  add(socket: Socket, toNode: ToNode): void {
    const leave = (): void => void this.#open.delete(connection);
    const connection = new PlainConnection(socket, this.#times, { ...this.#surroundings, toNode, leave });
    this.#open.add(connection);
  }

  /** Ends the connections that have had an answer and send nothing. */
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
    for (const connection of this.#open) connection.endIfLate(now);
  }
}

interface Owner extends Surroundings {
  readonly toNode: ToNode;
  /** Called when the connection has ended or goes to node's server. */
  readonly leave: () => void;
}

const endOfHead = Buffer.from("\r\n\r\n");
/** Pieces in which a head may come; every piece makes the text be looked at again. */
const MOST_PIECES = 4;
/** Longest text of a head to keep for the next request, so that idle connections hold little. */
const KEPT_TEXT = 1_024;
/** While the server stops, a new connection may be silent for so long, in ms. */
const NEW_WHILE_CLOSING_MS = 1_000;

/** The state of a connection. */
type State =
  /** Nothing has come yet. */
  | { readonly name: "new" }
  /** Nothing has come behind the last answer. */
  | { readonly name: "idle" }
  | { readonly name: "head"; readonly bytes: Buffer; readonly pieces: number }
  | { readonly name: "body"; readonly head: PlainHead; readonly pieces: PieceBuffer }
  /** The route cannot say yet whether it answers. */
  | { readonly name: "asking" }
  | { readonly name: "answering" };

/** As a client it waits for one answer at a time. */
class PlainConnection implements Client {
  readonly #socket: Socket;
  readonly #times: PlainTimes;
  readonly #owner: Owner;
  #state: State = { name: "new" };
  /** When the state began, on the clock of `performance.now()`. */
  #since = performance.now();
  /** The last head, which the next request most often repeats, and its text. */
  #head: PlainHead | undefined;
  #text = "";
  /** Bytes that came behind the request that is being answered. */
  #behind: Buffer | undefined;
  /** Whether the connection has waited for the route's answer to this request. */
  #hasAsked = false;
  /** Whether this request has had its turn. */
  #hadTurn = false;
  /** Gives up the request that is being answered; undefined if there is nothing to give up. */
  #onLeave: (() => void) | undefined;
  /** Whether the gateway itself has cut the connection, so that its client has not left. */
  #isCut = false;

  constructor(socket: Socket, times: PlainTimes, owner: Owner) {
    this.#socket = socket;
    this.#times = times;
    this.#owner = owner;
    socket.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onClose);
  }

  get hasLeft(): boolean {
    return this.#socket.destroyed && !this.#isCut;
  }

  onLeave(leave: () => void): () => void {
    this.#onLeave = leave;
    return () => {
      if (this.#onLeave === leave) this.#onLeave = undefined;
    };
  }

  closeIfIdle(): void {
    if (this.#state.name === "idle") this.#socket.destroySoon();
  }

  cut(): void {
    this.#isCut = true;
    this.#socket.destroy();
  }

  endIfLate(now: number): void {
    const { headMs, requestMs, keepAliveMs } = this.#times;
    const silentMs = now - this.#since;
    switch (this.#state.name) {
      case "new":
        if (this.#owner.isClosing() && silentMs >= NEW_WHILE_CLOSING_MS) this.cut();
        else if (silentMs >= headMs) this.#refuse("ERR_HTTP_REQUEST_TIMEOUT");
        return;
      case "head":
        if (silentMs >= headMs) this.#refuse("ERR_HTTP_REQUEST_TIMEOUT");
        return;
      case "body":
        if (silentMs >= requestMs) this.#refuse("ERR_HTTP_REQUEST_TIMEOUT");
        return;
      case "idle":
        // `Connections` judges a client that has not read its answer yet.
        if (this.#socket.writableLength > 0) this.#since = now;
        else if (silentMs >= keepAliveMs) this.cut();
        return;
      case "asking":
      case "answering":
        return;
    }
  }

  readonly #onData = (chunk: Buffer): void => {
    const state = this.#state;
    switch (state.name) {
      case "new":
      case "idle":
        return this.#begin(chunk, 1);
      case "head":
        return this.#begin(Buffer.concat([state.bytes, chunk]), state.pieces + 1);
      case "body":
        return this.#addToBody(state.head, state.pieces, chunk);
      case "asking":
      case "answering":
        this.#behind = chunk;
        this.#socket.pause();
        return;
    }
  };

  readonly #onClose = (): void => {
    this.#owner.leave();
    if (!this.#isCut) this.#onLeave?.();
  };

  readonly #onEnd = (): void => {
    const isArriving = this.#state.name === "head" || this.#state.name === "body";
    if (isArriving) this.#refuse("HPE_INVALID_EOF_STATE");
    else this.#socket.end();
  };

  /**
   * @param bytes the beginning of a request
   * @param pieces in how many pieces it came
   */
  #begin(bytes: Buffer, pieces: number): void {
    const end = bytes.indexOf(endOfHead);
    if (end < 0 && this.#waitsForHead(bytes, pieces)) {
      // A head that takes long is late from its first byte on.
      if (this.#state.name !== "head") this.#since = performance.now();
      this.#state = { name: "head", bytes, pieces };
      return;
    }
    if (end < 0 || end > longestPlainHead) return this.#giveToNode(bytes);
    const head = this.#headOf(bytes.toString("latin1", 0, end));
    const bodyAt = end + endOfHead.length;
    const length = bytes.length - bodyAt;
    if (head === undefined || length > head.length) return this.#giveToNode(bytes);
    if (length === head.length) return this.#answer(head, bytes.subarray(bodyAt));
    // Its turn comes when the body is complete: then there is work to do.
    const answer = this.#owner.route.find(head);
    if (answer === undefined) return this.#giveToNode(bytes);
    if (answer instanceof Promise) return this.#ask(answer, bytes);
    const body = new PieceBuffer(head.length);
    body.add(bytes.subarray(bodyAt));
    this.#enter({ name: "body", head, pieces: body });
  }

  #waitsForHead(bytes: Buffer, pieces: number): boolean {
    if (pieces > MOST_PIECES || bytes.length > longestPlainHead) return false;
    return mayBecomePlain(bytes.toString("latin1"));
  }

  /** @returns undefined if node's server has to answer */
  #headOf(text: string): PlainHead | undefined {
    if (text === this.#text) return this.#head;
    const head = readPlainHead(text);
    if (head === undefined || head.length > uncountedBytes || !this.#owner.route.takes(head)) return undefined;
    this.#head = { ...head, peer: this.#socket.remoteAddress };
    this.#text = text;
    return this.#head;
  }

  #addToBody(head: PlainHead, pieces: PieceBuffer, chunk: Buffer): void {
    const length = pieces.length + chunk.length;
    if (length > head.length) return this.#giveToNode(this.#headBytes(), pieces.bytes(), chunk);
    pieces.add(chunk);
    if (length === head.length) this.#answer(head, pieces.bytes());
  }

  #answer(head: PlainHead, body: Buffer): void {
    const { route, turn, access } = this.#owner;
    const turns = this.#hadTurn ? undefined : turn?.(head);
    this.#hadTurn = turn !== undefined;
    if (turns !== undefined) return this.#wait(turns, Buffer.concat([this.#headBytes(), body]));
    const { target, headers } = head;
    const { name } = this.#state;
    const since = name === "body" || name === "asking" ? this.#since : undefined;
    const facts = access?.hear({ socket: this.#socket, method: "POST", target, headers, since });
    const answer = route.find(head, facts);
    if (answer === undefined) return this.#giveToNode(this.#headBytes(), body);
    if (answer instanceof Promise) return this.#ask(answer, Buffer.concat([this.#headBytes(), body]));
    this.#enter({ name: "answering" });
    if (facts !== undefined) facts.bytesIn = body.length;
    this.#owner.counts?.open(1);
    answer(body, this)
      .then((answered) => this.#onAnswer(answered, body.length, facts))
      .catch((error: unknown) => {
        this.#owner.onFailure(error);
        this.cut();
        facts?.end();
      });
  }

  /** Waits for the route once, so that no route can hold a connection for ever. */
  #ask(promise: Promise<void>, bytes: Buffer): void {
    if (this.#hasAsked) return this.#giveToNode(bytes);
    this.#hasAsked = true;
    this.#wait(promise, bytes);
  }

  /** Begins the request anew after a promise. */
  #wait(promise: Promise<void>, bytes: Buffer): void {
    this.#enter({ name: "asking" });
    this.#socket.pause();
    void promise
      .then(() => {
        const all = this.#behind === undefined ? bytes : Buffer.concat([bytes, this.#behind]);
        this.#behind = undefined;
        if (this.#socket.destroyed) return;
        this.#socket.resume();
        this.#begin(all, 1);
      })
      .catch((error: unknown) => {
        this.#owner.onFailure(error);
        this.cut();
      });
  }

  #onAnswer({ reply, requestId, model }: PlainAnswer, bytesIn: number, facts: AnswerFacts | undefined): void {
    const socket = this.#socket;
    this.#owner.counts?.open(-1);
    if (!socket.writable) return facts?.end();
    const isLast = this.#owner.isClosing();
    const since = this.#since;
    if (facts !== undefined) noteReply(facts, reply, requestId, lengthOf(reply.body));
    const keepAliveMs = isLast ? undefined : this.#times.keepAliveMs;
    writeReply(socket, reply, { requestId, keepAliveMs, onWritten: facts && endOf(facts) });
    this.#enter({ name: "idle" });
    this.#count(reply, { model, bytesIn, ms: this.#since - since });
    if (isLast) return socket.destroySoon();
    this.#hasAsked = false;
    this.#hadTurn = false;
    if (this.#behind !== undefined) return this.#giveToNode(this.#behind);
    if (this.#text.length > KEPT_TEXT) {
      this.#head = undefined;
      this.#text = "";
    }
    if (socket.writableNeedDrain) {
      // The next request waits until the client has read more of the answers.
      socket.pause();
      socket.once("drain", () => socket.resume());
    }
  }

  #count(
    reply: Reply,
    { model, bytesIn, ms }: { readonly model: string | undefined; readonly bytesIn: number; readonly ms: number },
  ) {
    const { counts, route } = this.#owner;
    countRefusal(reply, model);
    if (this.#head === undefined || counts === undefined) return;
    counts.answered(route.routeOf(this.#head), "POST", reply.status, ms, { bytesIn, bytesOut: lengthOf(reply.body) });
  }

  #enter(state: State): void {
    this.#state = state;
    this.#since = performance.now();
  }

  /** The bytes of the head that was read last. */
  #headBytes(): Buffer {
    return Buffer.concat([Buffer.from(this.#text, "latin1"), endOfHead]);
  }

  #refuse(reason: string): void {
    this.#leave();
    this.#owner.refuse(this.#socket, reason);
  }

  /** @param bytes all that came and was not answered */
  #giveToNode(...bytes: Buffer[]): void {
    const socket = this.#socket;
    this.#leave();
    socket.pause();
    this.#owner.toNode(socket, this.#hadTurn);
    socket.unshift(bytes.length === 1 ? bytes[0] : Buffer.concat(bytes));
    socket.resume();
  }

  #leave(): void {
    this.#socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    this.#owner.leave();
  }
}

/** Ends the facts of a reply when the reply has left, or its connection has closed before. */
function endOf(facts: AnswerFacts): (error?: Error | null) => void {
  return (error) => {
    facts.isWhole = error === undefined || error === null;
    facts.end();
  };
}
