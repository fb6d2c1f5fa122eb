/**
 * Server-sent events on node's response. What is sent in one turn of the event loop leaves in one write, and while the socket is busy nothing is handed to it, so
 * a reader that takes nothing costs two small buffers until it is cut.
 */
import type { ServerResponse } from "node:http";

export interface SseEvent {
  /** What the client sends back as `Last-Event-ID`. */
  readonly id?: string | number | undefined;
  readonly event?: string | undefined;
  readonly data: string;
}

export interface SseOptions {
  /** Public id of the request: the client resumes with it. */
  readonly requestId: string;
  /** Added to those that every event stream has. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The client can go on at another gateway: its events carry ids. Such a stream is ended when this gateway stops; any other is held until it ends by itself or
   * the drain does.
   */
  readonly resumable?: boolean;
  readonly timing?: SseTiming;
}

export interface SseTiming {
  /** Longest silence before a comment is sent. */
  readonly heartbeatMs: number;
  /** How long the client's socket may take nothing before it is cut. */
  readonly stallMs: number;
}

export interface SseStream {
  /** Aborted when the client has gone, was cut, or the stream has ended. */
  readonly signal: AbortSignal;
  /** @returns false where the next event must wait for `room`, or a slow reader's events pile up. */
  add(event: SseEvent): boolean;
  /** The same of events that are text already. */
  addText(events: string): boolean;
  /** Resolves when the next event may be added; false when nobody will read it. */
  room(): Promise<boolean>;
  /** Both in one. */
  send(event: SseEvent): Promise<boolean>;
  /** After what was sent. Nothing can be sent any more. */
  end(): void;
}

const usualTiming: SseTiming = { heartbeatMs: 15_000, stallMs: 30_000 };

/** Sends wait above this; as much again may be with the socket. */
const maxPendingChars = 16 * 1024;
const looksPerHeartbeat = 3;

const accepted = Promise.resolve(true);
const gone = Promise.resolve(false);

/** Streams that a stopping gateway ends; see `SseOptions.resumable`. */
const resumable = new WeakMap<ServerResponse, EventStream>();

/** Writes the head, so the status is decided: refuse before. */
export function openSse(outgoing: ServerResponse, options: SseOptions): SseStream {
  outgoing.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
    "baton-request-id": options.requestId,
    ...options.headers,
  });
  outgoing.flushHeaders();
  const stream = new EventStream(outgoing, options.timing ?? usualTiming);
  if (options.resumable === true) resumable.set(outgoing, stream);
  return stream;
}

/** Ends the stream on `outgoing` if its client can go on elsewhere; the gateway stops. */
export function endIfResumable(outgoing: ServerResponse): void {
  resumable.get(outgoing)?.retire();
}

class EventStream implements SseStream {
  readonly #outgoing: ServerResponse;
  /** The body goes in HTTP's chunks, which are made here: node would hand the socket each in four parts. */
  readonly #chunked: boolean;
  readonly #timing: SseTiming;
  readonly #closed = new AbortController();
  readonly #watch: NodeJS.Timeout;
  /** Events not yet handed to the socket. */
  #pending = "";
  /** The client has gone, or the stream has ended. */
  #over = false;
  /** A flush comes at the end of this turn. */
  #scheduled = false;
  /** The socket has not yet taken what it was given. */
  #writing = false;
  /** When the socket was last given something, on `performance.now()`'s clock. */
  #writtenAt = performance.now();
  /** Senders to wake once `#pending` has room. */
  #waiting: ((open: boolean) => void)[] = [];

  constructor(outgoing: ServerResponse, timing: SseTiming) {
    this.#outgoing = outgoing;
    this.#chunked = outgoing.chunkedEncoding;
    outgoing.chunkedEncoding = false;
    this.#timing = timing;
    this.#watch = setInterval(this.#look, timing.heartbeatMs / looksPerHeartbeat);
    outgoing.on("error", () => outgoing.destroy());
    outgoing.once("close", this.#onClose);
    if (outgoing.destroyed) this.#onClose();
  }

  get signal(): AbortSignal {
    return this.#closed.signal;
  }

  add(event: SseEvent): boolean {
    return this.addText(format(event));
  }

  addText(events: string): boolean {
    if (this.#over) return false;
    this.#pending += events;
    if (events !== "" && !this.#scheduled && !this.#writing) {
      this.#scheduled = true;
      setImmediate(this.#flush);
    }
    return this.#pending.length < maxPendingChars;
  }

  room(): Promise<boolean> {
    if (this.#over) return gone;
    if (this.#pending.length < maxPendingChars) return accepted;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  send(event: SseEvent): Promise<boolean> {
    return this.add(event) ? accepted : this.room();
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#writing = true; // until all has left, or the client is cut for taking nothing
    this.#writtenAt = performance.now();
    this.#hand(this.#pending);
    this.#pending = "";
    this.#outgoing.end(this.#chunked ? "0\r\n\r\n" : "");
    this.#wake(false);
  }

  retire(): void {
    if (this.#over) return;
    this.#pending += "retry: 500\n\n";
    this.end();
    this.#closed.abort();
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    if (this.#over || this.#writing || this.#pending === "") return;
    const text = this.#pending;
    this.#pending = "";
    this.#writing = true;
    this.#writtenAt = performance.now();
    this.#hand(text, this.#onWritten);
    this.#wake(true);
  };

  /** In one piece, as one system call. */
  #hand(text: string, written?: () => void): void {
    if (text === "") return;
    const bytes = Buffer.byteLength(text);
    // Of the two encodings that write ASCII, the quicker.
    const encoding = bytes === text.length ? "latin1" : "utf8";
    const chunk = this.#chunked ? `${bytes.toString(16)}\r\n${text}\r\n` : text;
    this.#outgoing.write(chunk, encoding, written);
  }

  readonly #onWritten = (): void => {
    if (this.#outgoing.writableEnded) return;
    this.#writing = false;
    if (!this.#scheduled) this.#flush();
  };

  readonly #look = (): void => {
    const silentMs = performance.now() - this.#writtenAt;
    const { heartbeatMs, stallMs } = this.#timing;
    if (this.#writing) {
      if (silentMs >= stallMs) this.#outgoing.destroy();
    } else if (silentMs > heartbeatMs - heartbeatMs / looksPerHeartbeat) {
      this.#pending += ": \n\n";
      this.#flush();
    }
  };

  readonly #onClose = (): void => {
    clearInterval(this.#watch);
    this.#pending = "";
    this.#over = true;
    this.#closed.abort();
    this.#wake(false);
  };

  #wake(open: boolean): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve(open);
  }
}

function format({ id, event, data }: SseEvent): string {
  const lines = /[\r\n]/.test(data) ? data.replace(/\r\n|\r|\n/g, "\ndata: ") : data;
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  const eventLine = event === undefined ? "" : `event: ${event}\n`;
  return `${idLine}${eventLine}data: ${lines}\n\n`;
}
