/**
 * Keeps the open connections of all listening handles. Counts a connection once, even if a new
 * parser takes over the socket. Answers a few pipelined requests of a connection at a time, and
 * cuts a connection whose client reads nothing of the bytes that wait.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { noteCut } from "./stopping.js";

export interface ConnectionLimits {
  /** How many connections may be open. The gateway resets further connections. */
  readonly connections: number;
  /** How long a client may read nothing while bytes wait for that client, in ms. */
  readonly stallMs: number;
  /**
   * Bytes that may wait for all clients together. Above that, the gateway cuts connections that
   * have stalled for a sixth of `stallMs`, the largest first, until the rest fits.
   */
  readonly unreadBytes: number;
  /** How long a request may take to arrive, in ms. Uploads are exempt: Node limits them. */
  readonly requestMs: number;
}

/** Called with each connection whose request is late. Refuses the request. */
export type OnLate = (socket: Socket) => void;

/**
 * Called for each connection that the gateway cuts, with the number of bytes that the client has
 * not read.
 */
export type OnCut = (unreadBytes: number) => void;

interface Connection {
  /** Incomplete replies, oldest first. */
  readonly replies: ServerResponse[];
  /** Functions that begin the answers of the newest requests, which wait for earlier answers. */
  readonly later: (() => void)[];
  /** Bytes that the kernel had taken at the last look. Only a change has a meaning. */
  taken: number;
  /** Bytes of the write in progress that were left at the last look. */
  queued: number;
  /**
   * The last time when the client read, the oldest request was answered, or no bytes waited. In ms
   * on the clock of `performance.now()`.
   */
  movedAt: number;
  /**
   * The reply to a request that was still arriving at the last look, and when the arriving began.
   */
  arriving: { readonly reply: ServerResponse; readonly since: number } | undefined;
}

/**
 * Pipelined requests of a connection that the gateway answers at a time. A packet of 64 KiB holds
 * 1800 small requests, whose replies may be large and all wait for the first.
 */
const ANSWERED_AT_ONCE = 16;
/**
 * Most bytes to read ahead on a connection whose upgrade waits. Reading ahead reveals that a client
 * has left.
 */
const READ_AHEAD_BYTES = 65_536;
/** Number of looks at the connections during `stallMs`. */
const LOOKS = 30;
/**
 * The share of `stallMs` after which the gateway may cut a stalled connection for memory. The
 * kernel takes up to 4 MiB at once and then nothing until the client has read most of that. So a
 * client that reads steadily may seem to stall for seconds.
 */
const PATIENCE = 1 / 6;

export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #onCut: OnCut;
  readonly #onLate: OnLate;
  readonly #admitted = new Set<Socket>();
  readonly #open = new Map<Socket, Connection>();
  readonly #looking: NodeJS.Timeout;
  readonly #onHeld: () => void;
  #held = 0;
  #unread = 0;

  /** @param onHeld called after a request has to wait for earlier answers of its connection */
  constructor(limits: ConnectionLimits, onCut: OnCut, onLate: OnLate, onHeld: () => void = () => undefined) {
    this.#onHeld = onHeld;
    this.#limits = limits;
    this.#onCut = onCut;
    this.#onLate = onLate;
    this.#looking = setInterval(() => this.look(performance.now()), limits.stallMs / LOOKS).unref();
  }

  /** Bytes that clients have not read, at the last look. */
  get unreadBytes(): number {
    return this.#unread;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Requests that wait for earlier answers of their connections. */
  get held(): number {
    return this.#held;
  }

  /**
   * Counts a connection from its first moment, with TLS before the handshake.
   * @returns whether there was room; if not, the connection is cut
   */
  admit(socket: Socket): boolean {
    if (this.#admitted.size >= this.#limits.connections) {
      socket.destroy();
      return false;
    }
    this.#admitted.add(socket);
    socket.once("close", () => this.#admitted.delete(socket));
    return true;
  }

  /** Cuts all, with TLS also those without a handshake, which no server knows. */
  cutAll(): void {
    for (const { replies } of this.#open.values()) replies.forEach(noteCut);
    for (const socket of this.#admitted) socket.destroy();
  }

  /** Adds a connection. A socket that is there already comes again when a new parser takes over. */
  add(socket: Socket): void {
    if (this.#open.has(socket)) return;
    const connection: Connection = {
      replies: [],
      later: [],
      taken: 0,
      queued: 0,
      movedAt: performance.now(),
      arriving: undefined,
    };
    this.#open.set(socket, connection);
    // Between two parsers the socket has no other listener, and an error without a listener ends
    // the process.
    socket.on("error", () => undefined);
    socket.once("close", () => {
      this.#open.delete(socket);
      this.#held -= connection.later.length;
      connection.later.length = 0;
      endUnsent(connection.replies);
    });
  }

  /** Calls `begin` now, or after the answers to enough earlier requests of the connection. */
  answer(socket: Socket, reply: ServerResponse, begin: () => void): void {
    const connection = this.#open.get(socket);
    if (connection === undefined) {
      reply.destroy();
      return;
    }
    const { replies, later } = connection;
    replies.push(reply);
    reply.once("close", () => {
      const place = replies.indexOf(reply);
      if (place >= 0) replies.splice(place, 1);
      if (place === 0) connection.movedAt = performance.now();
      const next = later.shift();
      if (next === undefined) return;
      this.#held--;
      next();
    });
    if (replies.length <= ANSWERED_AT_ONCE) begin();
    else {
      later.push(begin);
      this.#held++;
      this.#onHeld();
    }
  }

  /** Returns the reply to the oldest request without a complete answer. */
  firstReply(socket: Socket): ServerResponse | undefined {
    return this.#open.get(socket)?.replies[0];
  }

  /**
   * Calls `go` when all requests so far of this connection have their answers, unless the
   * connection closes before. No parser reads meanwhile, so this method reads, and notices at once
   * if the client leaves.
   * @param head bytes that came behind the last request; `go` gets these bytes and all that follow
   */
  whenAnswered(socket: Socket, head: Buffer, go: (head: Buffer) => void): void {
    const last = this.#open.get(socket)?.replies.at(-1);
    if (last === undefined) return go(head);
    const ahead = [head];
    let room = READ_AHEAD_BYTES;
    const read = (): void => {
      while (room > 0) {
        const piece: unknown = socket.read();
        if (!Buffer.isBuffer(piece)) return;
        ahead.push(piece);
        room -= piece.length;
      }
    };
    const leave = (): void => void socket.destroy();
    socket.on("readable", read).once("end", leave);
    last.once("close", () => {
      if (socket.destroyed || socket.writableEnded) return;
      // If the body of an earlier request was read to its end, node lets the socket flow without a
      // reader.
      socket.pause();
      socket.off("readable", read).off("end", leave);
      // The old parser set a time limit for the next request, and no other code clears that limit.
      socket.setTimeout(0);
      go(Buffer.concat(ahead));
    });
  }

  /** Yields the reply to the newest request of each connection that answers. */
  *lastReplies(): Generator<ServerResponse> {
    for (const { replies } of this.#open.values()) {
      const last = replies.at(-1);
      if (last !== undefined) yield last;
    }
  }

  /**
   * Cuts the connections that have stalled for too long, and reports late requests.
   * @param now on the clock of `performance.now()`
   */
  look(now: number): void {
    const stalled: Stalled[] = [];
    let sum = 0;
    for (const [socket, connection] of this.#open) {
      if (isLate(connection, now, this.#limits.requestMs)) this.#onLate(socket);
      const unread = unreadBytes(socket, connection);
      sum += unread;
      // The client cannot read replies behind the first yet: only the end of the first moves them.
      const isSending = socket.writableLength > 0;
      if (unread === 0 || (isSending && hasMoved(socket, connection))) connection.movedAt = now;
      else stalled.push({ socket, unread, isSending, stalledMs: now - connection.movedAt });
    }
    this.#unread = sum;
    for (const { socket, unread } of toCut(stalled, sum, this.#limits)) {
      this.#onCut(unread);
      socket.destroy();
    }
  }

  close(): void {
    clearInterval(this.#looking);
  }
}

/** A connection whose client has read nothing since the last look. */
interface Stalled {
  readonly socket: Socket;
  readonly unread: number;
  /** Whether the client could read some of the bytes now. */
  readonly isSending: boolean;
  readonly stalledMs: number;
}

/**
 * Returns the connections to cut: each whose client has read nothing for `stallMs`, and more while
 * the waiting bytes exceed the limit.
 * @param sum bytes that wait on all connections
 */
function toCut(stalled: readonly Stalled[], sum: number, { stallMs, unreadBytes }: ConnectionLimits): Stalled[] {
  const isOverdue = ({ isSending, stalledMs }: Stalled): boolean => isSending && stalledMs >= stallMs;
  const cut = stalled.filter(isOverdue);
  let left = cut.reduce((bytes, { unread }) => bytes - unread, sum);
  const others = stalled.filter((one) => !isOverdue(one) && one.stalledMs >= stallMs * PATIENCE);
  for (const one of others.sort((a, b) => b.unread - a.unread)) {
    if (left <= unreadBytes) break;
    cut.push(one);
    left -= one.unread;
  }
  return cut;
}

/** The path on which a request may be large, and may take longer to arrive. */
const UPLOAD = /^\/v1\/files\/?(?:\?|$)/;

/** Whether the newest request has been arriving for too long. */
function isLate(connection: Connection, now: number, requestMs: number): boolean {
  const reply = connection.replies.at(-1);
  if (reply === undefined || reply.req.complete || UPLOAD.test(reply.req.url ?? "")) {
    connection.arriving = undefined;
    return false;
  }
  if (connection.arriving?.reply !== reply) connection.arriving = { reply, since: now };
  return now - connection.arriving.since >= requestMs;
}

/** Whether the kernel has taken bytes since the last call. */
function hasMoved(socket: Socket, connection: Connection): boolean {
  const taken = socket.bytesWritten - socket.writableLength;
  const queued = writeQueueSize(socket);
  if (taken === connection.taken && queued === connection.queued) return false;
  connection.taken = taken;
  connection.queued = queued;
  return true;
}

/**
 * Returns how many bytes of the write in progress are left. A large reply is one write until the
 * client has read it all, and no documented API of node shows its progress. Node's own timeouts
 * read this field, too.
 */
function writeQueueSize(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, "_handle");
  if (typeof handle !== "object" || handle === null) return 0;
  const size: unknown = Reflect.get(handle, "writeQueueSize");
  return typeof size === "number" ? size : 0;
}

/**
 * Counts the bytes that wait for the client. Replies that wait for earlier replies have no socket
 * yet.
 */
function unreadBytes(socket: Socket, { replies }: Connection): number {
  // With TLS node keeps the bytes as they were, too, until the client has read them.
  let bytes = socket.writableLength * ("encrypted" in socket ? 2 : 1);
  for (const reply of replies) if (reply.socket === null) bytes += reply.writableLength;
  return bytes;
}

/**
 * Emits `close` on the replies that wait. When a connection closes, node emits it only on the reply
 * in progress, and the handlers of the other replies would run to their end.
 */
function endUnsent(replies: ServerResponse[]): void {
  for (const reply of replies.splice(0)) {
    if (reply.socket !== null) continue;
    reply.destroy();
    reply.emit("close");
  }
}
