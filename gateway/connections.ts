/**
 * The open connections of all listening handles. Each is counted once, however often its requests
 * are parsed anew; answers a few pipelined requests at a time; and is cut when its client takes
 * nothing of what waits for it.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface ConnectionLimits {
  /** More are reset. */
  readonly connections: number;
  /** How long a client may take nothing of what waits for it. */
  readonly stallMs: number;
  /**
   * Bytes that wait for all clients together. Above it those are cut that have stood for a sixth of
   * `stallMs`, the largest first, until the rest fits.
   */
  readonly unreadBytes: number;
}

/** Told of each connection that is cut, with the bytes that its client has not read. */
export type OnCut = (unreadBytes: number) => void;

interface Connection {
  /** Replies that are not complete, oldest first. */
  readonly replies: ServerResponse[];
  /** Begins the answers of the last of them, which wait for earlier ones. */
  readonly later: (() => void)[];
  /** What the client had taken at the last look; only that it changes says anything. */
  taken: number;
  queued: number;
  /**
   * When the client last took something, the oldest request was answered, or nothing waited; on
   * `performance.now()`'s clock.
   */
  movedAt: number;
}

/**
 * A packet of 64 KiB holds 1 800 small requests, whose replies may be large and all wait for the
 * first.
 */
const ANSWERED_AT_ONCE = 16;
/** What is read behind an offer that waits, so that the client's leaving is seen. */
const READ_AHEAD_BYTES = 65_536;
/** Parts of `stallMs`. */
const LOOKS = 30;
/**
 * The kernel takes up to 4 MiB at once and then nothing until its client has read most of them: who
 * reads steadily may seem to stand for seconds.
 */
const PATIENCE = 1 / 6;

export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #onCut: OnCut;
  readonly #open = new Map<Socket, Connection>();
  readonly #looking: NodeJS.Timeout;

  constructor(limits: ConnectionLimits, onCut: OnCut) {
    this.#limits = limits;
    this.#onCut = onCut;
    this.#looking = setInterval(() => this.look(performance.now()), limits.stallMs / LOOKS).unref();
  }

  get size(): number {
    return this.#open.size;
  }

  /** A socket that is there already has come again: its requests are parsed anew. */
  enter(socket: Socket): void {
    if (this.#open.has(socket)) return;
    if (this.#open.size >= this.#limits.connections) {
      socket.destroy();
      return;
    }
    const connection: Connection = { replies: [], later: [], taken: 0, queued: 0, movedAt: performance.now() };
    this.#open.set(socket, connection);
    // Between two parsers nobody else hears of it, and an error that nobody hears ends the process.
    socket.on("error", () => undefined);
    socket.once("close", () => {
      this.#open.delete(socket);
      connection.later.length = 0;
      endUnsent(connection.replies);
    });
  }

  /** Calls `begin` now, or when enough of the requests before it on its connection are answered. */
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

  /** The reply that is being sent or made for the oldest request that is not answered. */
  firstReply(socket: Socket): ServerResponse | undefined {
    return this.#open.get(socket)?.replies[0];
  }

  /**
   * Calls `go` when all that was asked on this connection so far is answered, unless it closes
   * before. No parser reads meanwhile, so it is read here: a client that leaves is seen at once.
   * @param head what was read behind the last request; `go` gets it with what has come since.
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
      // Where the body of a request before is read to its end, Node has the socket flow, to nobody.
      socket.pause();
      socket.off("readable", read).off("end", leave);
      // Nobody but the parser that is gone would take back the time that it gave the next request.
      socket.setTimeout(0);
      go(Buffer.concat(ahead));
    });
  }

  /** Of each connection that answers, the newest request's reply. */
  *lastReplies(): Generator<ServerResponse> {
    for (const { replies } of this.#open.values()) {
      const last = replies.at(-1);
      if (last !== undefined) yield last;
    }
  }

  /** Cuts whoever has stood for too long. */
  look(now: number): void {
    const standing: Standing[] = [];
    let sum = 0;
    for (const [socket, connection] of this.#open) {
      const unread = unreadBytes(socket, connection);
      sum += unread;
      // Replies behind the first are not the client's to take: only that one's end moves them.
      const isSending = socket.writableLength > 0;
      if (unread === 0 || (isSending && hasMoved(socket, connection))) connection.movedAt = now;
      else standing.push({ socket, unread, isSending, stoodMs: now - connection.movedAt });
    }
    for (const { socket, unread } of toCut(standing, sum, this.#limits)) {
      this.#onCut(unread);
      socket.destroy();
    }
  }

  close(): void {
    clearInterval(this.#looking);
  }
}

/** A connection whose client has taken nothing since the last look. */
interface Standing {
  readonly socket: Socket;
  readonly unread: number;
  /** The client could take some of it. */
  readonly isSending: boolean;
  readonly stoodMs: number;
}

function toCut(standing: readonly Standing[], sum: number, { stallMs, unreadBytes }: ConnectionLimits): Standing[] {
  const isStalled = ({ isSending, stoodMs }: Standing): boolean => isSending && stoodMs >= stallMs;
  const cut = standing.filter(isStalled);
  let left = cut.reduce((bytes, { unread }) => bytes - unread, sum);
  const others = standing.filter((one) => !isStalled(one) && one.stoodMs >= stallMs * PATIENCE);
  for (const one of others.sort((a, b) => b.unread - a.unread)) {
    if (left <= unreadBytes) break;
    cut.push(one);
    left -= one.unread;
  }
  return cut;
}

/** Whether the kernel has taken anything since this was asked last. */
function hasMoved(socket: Socket, connection: Connection): boolean {
  const taken = socket.bytesWritten - socket.writableLength;
  const queued = writeQueueSize(socket);
  if (taken === connection.taken && queued === connection.queued) return false;
  connection.taken = taken;
  connection.queued = queued;
  return true;
}

/**
 * What is left of the write that is under way. A large reply is one write for as long as its client
 * reads, and nothing that Node documents tells how far it has come; its own timeouts look here too.
 */
function writeQueueSize(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, "_handle");
  if (typeof handle !== "object" || handle === null) return 0;
  const size: unknown = Reflect.get(handle, "writeQueueSize");
  return typeof size === "number" ? size : 0;
}

/** Replies that wait for earlier ones have no socket yet. */
function unreadBytes(socket: Socket, { replies }: Connection): number {
  let bytes = socket.writableLength;
  for (const reply of replies) if (reply.socket === null) bytes += reply.writableLength;
  return bytes;
}

/**
 * Node tells only the reply that is being sent that the connection has closed; what is made for the
 * others would be made to its end.
 */
function endUnsent(replies: ServerResponse[]): void {
  for (const reply of replies.splice(0)) {
    if (reply.socket !== null) continue;
    reply.destroy();
    reply.emit("close");
  }
}
