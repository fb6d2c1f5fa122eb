/**
 * The connections of gRPC below the library: their windows, their pings, the memory of messages
 * that have not come whole, and clients that do not read. The library has no settings for these, so
 * this file alone reaches into it; a test reads the window that a client is told.
 */
import { constants, type Http2Session, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Server } from "@grpc/grpc-js";
import type { BodyRoom } from "../../http/body.js";

/** Bytes that a client may send on one stream, or one connection, before the gateway has read. */
const STREAM_WINDOW = 8 * 1024 * 1024;
const CONNECTION_WINDOW = 16 * 1024 * 1024;
/** The large windows of all connections together. Beyond that, a connection has HTTP/2's own. */
const ALL_WINDOWS = 1024 * 1024 * 1024;

/** A client may ping so often in one go, and then once in so many ms. */
const MOST_PINGS = 100;
const PING_EVERY_MS = 1_000;

/** How long a connection may take to speak HTTP/2, in ms. */
const PREFACE_MS = 10_000;

/** How long a client may read nothing while bytes of an answer wait for it, in ms. */
const STALL_MS = 30_000;
/** Time between two looks for such clients, in ms. */
const LOOK_MS = 5_000;

/** HTTP/2's error code for a client that asks for too much, which gRPC calls RESOURCE_EXHAUSTED. */
const ENHANCE_YOUR_CALM = 0xb;

/** The fields of the library's server that this file needs. */
interface Insides {
  readonly commonServerOptions: { settings?: object };
  readonly http2Servers: ReadonlyMap<HttpServer, unknown>;
}

interface HttpServer {
  on(event: "session", listener: (session: ServerHttp2Session) => void): void;
  on(event: "stream", listener: (stream: ServerHttp2Stream) => void): void;
  on(event: "sessionError", listener: (error: Error) => void): void;
}

/** Gives streams their window. Call this before the server takes connections. */
export function enlargeWindows(server: Server): void {
  const { commonServerOptions } = server as unknown as Insides;
  commonServerOptions.settings = { ...commonServerOptions.settings, initialWindowSize: STREAM_WINDOW };
}

/**
 * Follows the connections of a server.
 * @param roomOf gives the room of one message in the budget of all bodies
 */
export class Sessions {
  readonly #open = new Set<ServerHttp2Session>();
  readonly #roomOf: () => BodyRoom;
  /** The connections with a large window, and the bytes of all these windows. */
  readonly #enlarged = new Set<Http2Session>();
  #windows = 0;
  /** The open streams. */
  readonly #streams = new Set<ServerHttp2Stream>();
  /** The streams with bytes that wait: how many at the last move, and when that was. */
  readonly #unread = new Map<ServerHttp2Stream, { readonly bytes: number; readonly since: number }>();
  readonly #looking: NodeJS.Timeout;

  constructor(server: Server, roomOf: () => BodyRoom) {
    this.#roomOf = roomOf;
    for (const http2 of (server as unknown as Insides).http2Servers.keys()) {
      http2.on("session", (session) => this.#add(session));
      http2.on("stream", (stream) => this.#follow(stream));
      // Bytes that are not HTTP/2 end their connection, and nothing else.
      http2.on("sessionError", () => undefined);
    }
    this.#looking = setInterval(() => this.#cutUnread(performance.now()), LOOK_MS).unref();
  }

  close(): void {
    clearInterval(this.#looking);
  }

  /** Resets the streams whose clients read nothing, since what waits there takes memory. */
  #cutUnread(now: number): void {
    for (const stream of this.#streams) {
      const bytes = stream.writableLength;
      const before = this.#unread.get(stream);
      if (bytes === 0) this.#unread.delete(stream);
      else if (before?.bytes !== bytes) this.#unread.set(stream, { bytes, since: now });
      else if (now - before.since >= STALL_MS) stream.close(constants.NGHTTP2_CANCEL);
    }
  }

  get size(): number {
    return this.#open.size;
  }

  #add(session: ServerHttp2Session): void {
    this.#open.add(session);
    const silent = setTimeout(() => session.destroy(), PREFACE_MS).unref();
    session.once("remoteSettings", () => clearTimeout(silent));
    let pings = 0;
    let pingedAt = performance.now();
    session.on("ping", () => {
      const now = performance.now();
      pings = Math.max(0, pings - (now - pingedAt) / PING_EVERY_MS) + 1;
      pingedAt = now;
      if (pings > MOST_PINGS) session.destroy(undefined, ENHANCE_YOUR_CALM);
    });
    session.once("close", () => {
      clearTimeout(silent);
      if (this.#enlarged.delete(session)) this.#windows -= CONNECTION_WINDOW;
      this.#open.delete(session);
    });
  }

  /** Counts the bytes of each message that has not come whole, and gives its connection room. */
  #follow(stream: ServerHttp2Stream): void {
    const frame = new MessageLengths();
    let room: BodyRoom | undefined;
    const release = (): void => room?.release();
    this.#streams.add(stream);
    stream.once("close", () => {
      this.#streams.delete(stream);
      this.#unread.delete(stream);
      release();
    });
    stream.on("data", (bytes: Buffer) => {
      const held = frame.take(bytes);
      if (held === 0) return release();
      room ??= this.#roomOf();
      try {
        room.grow(held);
        this.#enlarge(stream.session);
      } catch {
        stream.close(ENHANCE_YOUR_CALM);
      }
    });
  }

  /** Idle connections keep HTTP/2's own window, so that the budget is there for large messages. */
  #enlarge(session: Http2Session | undefined): void {
    if (session === undefined || this.#enlarged.has(session)) return;
    if (this.#windows + CONNECTION_WINDOW > ALL_WINDOWS) return;
    this.#windows += CONNECTION_WINDOW;
    this.#enlarged.add(session);
    (session as ServerHttp2Session).setLocalWindowSize(CONNECTION_WINDOW);
  }
}

/** The length of a message stands in the four bytes behind its first (gRPC over HTTP/2). */
const HEAD_BYTES = 5;

/** Follows the lengths of the messages of a stream. */
export class MessageLengths {
  readonly #head: number[] = [];
  /** Bytes of the message at hand that are still to come, and that have come. */
  #left = 0;
  #held = 0;

  /** @returns how many bytes of a message have come that is not whole */
  take(bytes: Buffer): number {
    for (let at = 0; at < bytes.length;) {
      if (this.#left > 0) {
        const some = Math.min(this.#left, bytes.length - at);
        this.#left -= some;
        this.#held += some;
        at += some;
        if (this.#left === 0) this.#held = 0;
        continue;
      }
      this.#head.push(bytes[at++] ?? 0);
      if (this.#head.length < HEAD_BYTES) continue;
      const [, a = 0, b = 0, c = 0, d = 0] = this.#head.splice(0);
      this.#left = a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d;
    }
    return this.#held;
  }
}
