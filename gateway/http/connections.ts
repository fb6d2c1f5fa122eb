/**
 * Keeps the open connections of all listening handles. A connection is counted once, however often
 * its requests are parsed anew; it answers a few pipelined requests at a time; and it is cut when
 * its client reads nothing of what waits for it.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface ConnectionLimits {
  /** How many connections may be open; further ones are reset. */
  readonly connections: number;
  /** How long a client may read nothing of what waits for it, in ms. */
  readonly stallMs: number;
  /**
   * Bytes that may wait for all clients together. Above that, connections that have stalled for a
   * sixth of `stallMs` are cut, the largest first, until the rest fits.
   */
  readonly unreadBytes: number;
  /** How long a request may take to arrive that is no upload, in ms. Node limits uploads. */
  readonly requestMs: number;
}

/** Is told of each connection whose request has not arrived in time; it refuses the request. */
export type OnLate = (socket: Socket) => void;

/** Is told of each connection that is cut, with the bytes that its client has not read. */
export type OnCut = (unreadBytes: number) => void;

interface Connection {
  /** Replies that are not complete, oldest first. */
  readonly replies: ServerResponse[];
  /** Functions that begin the answers of the last of them, which wait for earlier ones. */
  readonly later: (() => void)[];
  /** Bytes that the kernel had taken at the last look; only a change of it says anything. */
  taken: number;
  /** Bytes that were left of the write under way at the last look. */
  queued: number;
  /**
   * When the client was last seen to read, the oldest request was answered, or nothing waited; in
   * ms on the clock of `performance.now()`.
   */
  movedAt: number;
  /** The reply to a request that had not all arrived at the last look, and when that began. */
  arriving: { readonly reply: ServerResponse; readonly since: number } | undefined;
}

/**
 * Pipelined requests that are answered at a time. A packet of 64 KiB holds 1 800 small requests,
 * whose replies may be large and all wait for the first.
 */
const ANSWERED_AT_ONCE = 16;
/**
 * Most that is read ahead on a connection whose upgrade waits, so that a client that leaves is
 * seen.
 */
const READ_AHEAD_BYTES = 65_536;
/** How often connections are looked at in the time of `stallMs`. */
const LOOKS = 30;
/**
 * The share of `stallMs` after which a stalled connection may be cut for memory. The kernel takes
 * up to 4 MiB at once and then nothing until the client has read most of them, so a client that
 * reads steadily may seem to have stalled for seconds.
 */
const PATIENCE = 1 / 6;

export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #onCut: OnCut;
  readonly #onLate: OnLate;
  readonly #open = new Map<Socket, Connection>();
  readonly #looking: NodeJS.Timeout;

  constructor(limits: ConnectionLimits, onCut: OnCut, onLate: OnLate) {
    this.#limits = limits;
    this.#onCut = onCut;
    this.#onLate = onLate;
    this.#looking = setInterval(() => this.look(performance.now()), limits.stallMs / LOOKS).unref();
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Adds a connection. A socket that is there already has come again to have its requests parsed
   * anew.
   */
  add(socket: Socket): void {
    if (this.#open.has(socket)) return;
    if (this.#open.size >= this.#limits.connections) {
      socket.destroy();
      return;
    }
    const connection: Connection = {
      replies: [],
      later: [],
      taken: 0,
      queued: 0,
      movedAt: performance.now(),
      arriving: undefined,
    };
    this.#open.set(socket, connection);
    // Between two parsers nobody else listens, and an error without a listener ends the process.
    socket.on("error", () => undefined);
    socket.once("close", () => {
      this.#open.delete(socket);
      connection.later.length = 0;
      endUnsent(connection.replies);
    });
  }

  /** Calls `begin` now, or once enough earlier requests of the connection are answered. */
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
      later.shift()?.();
    });
    if (replies.length <= ANSWERED_AT_ONCE) begin();
    else later.push(begin);
  }

  /** Returns the reply that is being made or sent for the oldest request that is not answered. */
  firstReply(socket: Socket): ServerResponse | undefined {
    return this.#open.get(socket)?.replies[0];
  }

  /**
   * Calls `go` when all requests so far of this connection are answered, unless it closes before.
   * No parser reads meanwhile, so the connection is read here, and a client that leaves is seen at
   * once.
   * @param head what was read behind the last request; `go` gets it with what has come since
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
      // Where the body of an earlier request was read to its end, node lets the socket flow to
      // nobody.
      socket.pause();
      socket.off("readable", read).off("end", leave);
      // The old parser gave the next request a time limit, and nobody else would take it back.
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
   * Cuts the connections that have stalled for too long, and those whose request is late.
   * @param now on the clock of `performance.now()`
   */
  look(now: number): void {
    const stalled: Stalled[] = [];
    let sum = 0;
    for (const [socket, connection] of this.#open) {
      if (isLate(connection, now, this.#limits.requestMs)) this.#onLate(socket);
      const unread = unreadBytes(socket, connection);
      sum += unread;
      // Replies behind the first cannot be read yet: only the end of the first moves them.
      const isSending = socket.writableLength > 0;
      if (unread === 0 || (isSending && hasMoved(socket, connection))) connection.movedAt = now;
      else stalled.push({ socket, unread, isSending, stalledMs: now - connection.movedAt });
    }
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
  /** Whether the client could read some of it now. */
  readonly isSending: boolean;
  readonly stalledMs: number;
}

/**
 * Decides which connections are cut: all whose client has read nothing for `stallMs`, and others
 * while more waits than the limit.
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

/** Whether the kernel has taken anything since the last call. */
function hasMoved(socket: Socket, connection: Connection): boolean {
  const taken = socket.bytesWritten - socket.writableLength;
  const queued = writeQueueSize(socket);
  if (taken === connection.taken && queued === connection.queued) return false;
  connection.taken = taken;
  connection.queued = queued;
  return true;
}

/**
 * Returns how many bytes are left of the write under way. A large reply is one write for as long as
 * its client reads, and nothing that node documents tells how far it has come. Node's own timeouts
 * look here, too.
 */
function writeQueueSize(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, "_handle");
  if (typeof handle !== "object" || handle === null) return 0;
  const size: unknown = Reflect.get(handle, "writeQueueSize");
  return typeof size === "number" ? size : 0;
}

/** Counts what waits for the client; replies that wait for earlier ones have no socket yet. */
function unreadBytes(socket: Socket, { replies }: Connection): number {
  let bytes = socket.writableLength;
  for (const reply of replies) if (reply.socket === null) bytes += reply.writableLength;
  return bytes;
}

/**
 * Tells the replies that wait that their connection has closed. Node tells only the one that is
 * being sent, and the others would be made to their end.
 */
function endUnsent(replies: ServerResponse[]): void {
  for (const reply of replies.splice(0)) {
    if (reply.socket !== null) continue;
    reply.destroy();
    reply.emit("close");
  }
}
