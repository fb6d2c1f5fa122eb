/**
 * Writes server-sent events to node's response. Events of one turn of the event loop leave in one
 * write, and a busy socket gets nothing more. So a client that reads nothing costs two small
 * buffers until the gateway cuts the connection.
 */
import type { ServerResponse } from "node:http";
import { InferenceError } from "#shared/errors.js";
import { errorBody, errorShapeOf } from "../formats/errors.js";
import { factsOf } from "../facts/answer-facts.js";
import { countStreamReader, type ReaderKind } from "../stream/counts.js";
import { endWithKey } from "./opened.js";
import { endWhenStopping } from "./stopping.js";

export interface SseEvent {
  /** A client that reconnects sends this back as `Last-Event-ID`. */
  readonly id?: string | number | undefined;
  readonly event?: string | undefined;
  readonly data: string;
}

export interface SseOptions {
  /** Public id of the request, with which the client may resume; absent for other events. */
  readonly requestId?: string;
  /** Headers beside those that every event stream has. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Whether the client can resume at another gateway, because the events carry the position. A
   * stopping gateway ends such a stream.
   */
  readonly resumable?: boolean;
  readonly timing?: SseTiming;
  /** As which reader of a stream the client counts; absent: as a reader of events. */
  readonly countsAs?: ReaderKind;
}

export interface SseTiming {
  /** Longest silence before the stream sends a comment as a heartbeat. */
  readonly heartbeatMs: number;
  /** How long the client's socket may take nothing before the gateway cuts the connection. */
  readonly stallMs: number;
}

export interface SseStream {
  /**
   * Aborts when the client has gone, the gateway has cut the connection, or the stream has ended.
   */
  readonly signal: AbortSignal;
  /**
   * Adds an event.
   * @returns false if the caller must await `room` before the next event; else the events of a slow
   * reader pile up
   */
  add(event: SseEvent): boolean;
  /** Does the same with events in their text form. */
  addText(events: string): boolean;
  /**
   * Resolves with true when there is room for the next event, with false when the reader has gone.
   */
  room(): Promise<boolean>;
  /** Adds an event and awaits room for the next one. */
  send(event: SseEvent): Promise<boolean>;
  /** Ends the stream after the events added so far. Later calls add nothing. */
  end(): void;
}

const usualTiming: SseTiming = { heartbeatMs: 15_000, stallMs: 30_000 };

/** Above this, senders wait for room. The socket may hold as much again. */
const maxPendingChars = 16 * 1024;
/** Number of looks at a stream during the time of a heartbeat. */
const looksPerHeartbeat = 3;

const accepted = Promise.resolve(true);
const refused = Promise.resolve(false);

/** Opens a stream. This writes the head with status 200, so a refusal must come before. */
export function openSse(outgoing: ServerResponse, options: SseOptions): SseStream {
  outgoing.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
    ...(options.requestId !== undefined && { "baton-request-id": options.requestId }),
    ...options.headers,
  });
  outgoing.flushHeaders();
  // Events of the fleet are no stream of a request.
  const left = options.requestId === undefined ? () => undefined : countStreamReader(options.countsAs ?? "sse");
  const stream = new EventStream(outgoing, options.timing ?? usualTiming, left);
  if (options.resumable === true) endWhenStopping(outgoing, () => stream.retire());
  endWithKey(outgoing, ({ code, message }) => {
    // A reader who was let in hears one code for every fault of the key itself.
    const fault = new InferenceError(code === "tenant_suspended" ? code : "invalid_api_key", message);
    const facts = factsOf(outgoing.req);
    if (facts !== undefined) facts.code = fault.code;
    stream.refuse(errorBody(fault, errorShapeOf(outgoing.req.url ?? "")));
  });
  return stream;
}

class EventStream implements SseStream {
  readonly #outgoing: ServerResponse;
  /**
   * Whether the body uses HTTP's chunks. This class makes the chunks, because node writes each
   * chunk in four parts.
   */
  readonly #chunked: boolean;
  readonly #timing: SseTiming;
  readonly #left: () => void;
  readonly #closed = new AbortController();
  readonly #watch: NodeJS.Timeout;
  /** Events not yet handed to the socket. */
  #pending = "";
  /** Whether the client has gone or the stream has ended. */
  #over = false;
  /** Whether a flush comes at the end of this turn. */
  #scheduled = false;
  /** Whether the socket still works on the last write. */
  #writing = false;
  /** Time of the last write to the socket, in ms on the clock of `performance.now()`. */
  #writtenAt = performance.now();
  /** Senders that wait until `#pending` has room. */
  #waiting: ((open: boolean) => void)[] = [];

  /** @param left called once, when the client has gone */
  constructor(outgoing: ServerResponse, timing: SseTiming, left: () => void) {
    this.#left = left;
    this.#outgoing = outgoing;
    this.#chunked = outgoing.chunkedEncoding;
    outgoing.chunkedEncoding = false;
    this.#timing = timing;
    this.#watch = setInterval(this.#look, timing.heartbeatMs / looksPerHeartbeat);
    outgoing.on("error", () => outgoing.destroy());
    if (outgoing.destroyed) this.#onClose();
    else outgoing.once("close", this.#onClose);
  }

  get signal(): AbortSignal {
    return this.#closed.signal;
  }

  add(event: SseEvent): boolean {
    return this.addText(eventText(event));
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
    if (this.#over) return refused;
    if (this.#pending.length < maxPendingChars) return accepted;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  send(event: SseEvent): Promise<boolean> {
    return this.add(event) ? accepted : this.room();
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#writing = true; // until all bytes have left, or the gateway cuts a stalled client
    this.#writtenAt = performance.now();
    this.#write(this.#pending);
    this.#pending = "";
    this.#outgoing.end(this.#chunked ? "0\r\n\r\n" : "");
    this.#wake(false);
  }

  retire(): void {
    this.#endWith("retry: 500\n\n");
  }

  /** @param data of an event `error`, the last of the stream */
  refuse(data: string): void {
    this.#endWith(eventText({ event: "error", data }));
  }

  #endWith(text: string): void {
    if (this.#over) return;
    this.#pending += text;
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
    this.#write(text, this.#onWritten);
    this.#wake(true);
  };

  /** Writes in one piece, as one system call. */
  #write(text: string, written?: () => void): void {
    if (text === "") return;
    const bytes = Buffer.byteLength(text);
    // Both encodings write ASCII alike, and latin1 is faster.
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
    this.#left();
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

/** Returns an event in its form on the wire. */
export function eventText({ id, event, data }: SseEvent): string {
  const lines = /[\r\n]/.test(data) ? data.replace(/\r\n|\r|\n/g, "\ndata: ") : data;
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  const eventLine = event === undefined ? "" : `event: ${event}\n`;
  return `${idLine}${eventLine}data: ${lines}\n\n`;
}
