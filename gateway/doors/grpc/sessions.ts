/**
 * The connections of gRPC below the library: their windows, their pings, the bytes of messages, the
 * deadlines of calls, and clients that send or read too slowly. The library has no settings for
 * these, so this file alone reaches into it; a test reads the window that a client is told.
 */
import {
  constants,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Metadata, Server, ServerInterceptingCallInterface } from "@grpc/grpc-js";
import { fixedError } from "#shared/errors.js";
import type { Arrivals } from "./arrivals.js";
import { callAt, takeFarTimeout } from "./deadline.js";

/** Bytes that a client may send on one stream, or one connection, before the gateway has read. */
const STREAM_WINDOW = 8 * 1024 * 1024;
const CONNECTION_WINDOW = 16 * 1024 * 1024;
const USUAL_WINDOW = 65_535;
/** The large windows of all connections together. Beyond that, a connection has HTTP/2's own. */
const ALL_WINDOWS = 1024 * 1024 * 1024;

/** A client may ping so often in one go, and then once in so many ms. */
const MOST_PINGS = 100;
const PING_EVERY_MS = 1_000;

/** How long a connection may take to speak HTTP/2, in ms. */
const PREFACE_MS = 10_000;

/** How long a client may read nothing while bytes of an answer wait for it, in ms. */
const STALL_MS = 30_000;
/**
 * A message counts as unread until the connection has taken all of it, so a large one may take
 * longer: a ms for so many bytes.
 */
const SLOWEST_BYTES = 1_024;
/** How long a message may take to arrive, in ms, as over HTTP. */
const MESSAGE_MS = 120_000;
/** A connection without a large message for so long, in ms, gives its large window back. */
const WINDOW_MS = 60_000;
/** Time between two looks for such clients and connections, in ms. */
const LOOK_MS = 5_000;

const AUTHORIZATION = "authorization";

/** Bytes before each message (gRPC over HTTP/2). */
const MESSAGE_HEAD = 5;

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
  prependListener(
    event: "stream",
    listener: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, raw: readonly string[]) => void,
  ): void;
  on(event: "sessionError", listener: (error: Error) => void): void;
}

/** The fields of the library's call. */
interface CallInsides {
  readonly stream: ServerHttp2Stream;
  deadlineTimer: NodeJS.Timeout | null;
  /** @param message with its head. The library calls this in the order of the messages */
  decompressMessage: (message: Buffer, encoding: string) => Buffer | Promise<Buffer>;
}

/** Gives streams their window. Call this before the server takes connections. */
export function enlargeWindows(server: Server): void {
  const { commonServerOptions } = server as unknown as Insides;
  commonServerOptions.settings = { ...commonServerOptions.settings, initialWindowSize: STREAM_WINDOW };
}

/** A call whose messages are coming. */
interface Coming {
  readonly arrivals: Arrivals;
  readonly refuse: (error: unknown) => void;
}

/** Follows the connections of a server. */
export class Sessions {
  readonly #open = new Set<ServerHttp2Session>();
  /** When each connection with a large window last had a large message. */
  readonly #enlarged = new Map<ServerHttp2Session, number>();
  /** The open streams, each with what comes on it. */
  readonly #streams = new Map<ServerHttp2Stream, Coming | undefined>();
  /** The streams with bytes that wait: how many at the last move, and when that was. */
  readonly #unread = new Map<ServerHttp2Stream, { readonly bytes: number; readonly since: number }>();
  /** The deadlines that the library cannot keep, on the clock of `Date.now()`. */
  readonly #far = new WeakMap<ServerHttp2Stream, number>();
  /** Of streams with several headers `authorization`: the values behind the first one. */
  readonly #further = new WeakMap<ServerHttp2Stream, readonly string[]>();
  /** The streams that had their status at the last look. */
  #answered = new Set<ServerHttp2Stream>();
  readonly #looking: NodeJS.Timeout;

  constructor(server: Server) {
    for (const http2 of (server as unknown as Insides).http2Servers.keys()) {
      http2.on("session", (session) => this.#add(session));
      // Before the library reads the head.
      http2.prependListener("stream", (stream, headers, _flags, raw) => {
        const farMs = takeFarTimeout(headers);
        if (farMs !== undefined) this.#far.set(stream, Date.now() + farMs);
        const [, ...further] = raw.filter((_, i) => raw[i - 1] === AUTHORIZATION && i % 2 === 1);
        if (further.length > 0) this.#further.set(stream, further);
      });
      http2.on("stream", (stream) => {
        if (!this.#streams.has(stream)) this.#streams.set(stream, undefined);
        stream.once("close", () => this.#forget(stream));
      });
      // Bytes that are not HTTP/2 end their connection, and nothing else.
      http2.on("sessionError", () => undefined);
    }
    this.#looking = setInterval(() => this.#look(performance.now()), LOOK_MS).unref();
  }

  get size(): number {
    return this.#open.size;
  }

  close(): void {
    clearInterval(this.#looking);
  }

  /**
   * Counts the messages of a call, and undoes their compression within the same limits.
   * @param refuse ends the call with an error
   */
  follow(call: ServerInterceptingCallInterface, arrivals: Arrivals, refuse: (error: unknown) => void): void {
    const insides = call as unknown as CallInsides;
    const { stream } = insides;
    if (stream.destroyed) return;
    this.#streams.set(stream, { arrivals, refuse });
    stream.prependListener("data", (bytes: Buffer) => {
      try {
        arrivals.receive(bytes);
        if (arrivals.isComing) this.#enlarge(stream.session);
      } catch (error) {
        refuse(error);
      }
    });
    insides.decompressMessage = async (message, encoding) => {
      try {
        return await arrivals.unpack(message.subarray(MESSAGE_HEAD), encoding === "identity" ? undefined : encoding);
      } catch (error) {
        refuse(error);
        throw error;
      }
    };
  }

  /** Adds what Node leaves out of a head: of several headers `authorization` it shows the first. */
  complete(call: ServerInterceptingCallInterface, metadata: Metadata): void {
    const { stream } = call as unknown as CallInsides;
    for (const value of this.#further.get(stream) ?? []) metadata.add(AUTHORIZATION, value);
  }

  /** Calls back when the deadline of a call passes, in place of the library's own status. */
  onDeadline(call: ServerInterceptingCallInterface, passed: () => void): void {
    const insides = call as unknown as CallInsides;
    const at = this.#far.get(insides.stream) ?? Number(call.getDeadline());
    if (at === Infinity) return;
    // The library clears its timer when the call ends.
    clearTimeout(insides.deadlineTimer ?? undefined);
    callAt(at, (timer) => (insides.deadlineTimer = timer), passed);
  }

  #look(now: number): void {
    const answered = new Set<ServerHttp2Stream>();
    for (const [stream, coming] of this.#streams) {
      if (stream.isPaused()) coming?.arrivals.pause(now);
      if (coming?.arrivals.isLate(now, MESSAGE_MS) === true) coming.refuse(fixedError("request_timeout", "usual"));
      this.#cutUnread(stream, now);
      // A client that has its status and does not end its side holds the stream open.
      if (this.#answered.has(stream)) stream.close(constants.NGHTTP2_NO_ERROR);
      else if (stream.writableFinished) answered.add(stream);
    }
    this.#answered = answered;
    for (const [session, at] of this.#enlarged) if (now - at >= WINDOW_MS) this.#shrink(session);
  }

  /** Resets a stream whose client reads nothing, since what waits there takes memory. */
  #cutUnread(stream: ServerHttp2Stream, now: number): void {
    const bytes = stream.writableLength;
    const before = this.#unread.get(stream);
    if (bytes === 0) this.#unread.delete(stream);
    else if (before?.bytes !== bytes) this.#unread.set(stream, { bytes, since: now });
    else if (now - before.since >= STALL_MS + bytes / SLOWEST_BYTES) stream.close(constants.NGHTTP2_CANCEL);
  }

  #forget(stream: ServerHttp2Stream): void {
    this.#streams.delete(stream);
    this.#unread.delete(stream);
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
      this.#enlarged.delete(session);
      this.#open.delete(session);
    });
  }

  /** Idle connections keep HTTP/2's own window, so that the budget is there for large messages. */
  #enlarge(session: Http2Session | undefined): void {
    if (session === undefined || session.destroyed) return;
    const one = session as ServerHttp2Session;
    if (!this.#enlarged.has(one)) {
      if ((this.#enlarged.size + 1) * CONNECTION_WINDOW > ALL_WINDOWS) return;
      one.setLocalWindowSize(CONNECTION_WINDOW);
    }
    this.#enlarged.set(one, performance.now());
  }

  #shrink(session: ServerHttp2Session): void {
    this.#enlarged.delete(session);
    if (!session.destroyed) session.setLocalWindowSize(USUAL_WINDOW);
  }
}
