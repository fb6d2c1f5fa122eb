/**
 * `/v2/requests/<id>/stream`: the records of a request as a stream of the Durable Streams protocol.
 * Clients can only read, because the worker writes the stream.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fixedError, InferenceError } from "#shared/errors.js";
import { notedPages, notePage } from "../../facts/request-facts.js";
import { errorBody, errorReply } from "../../formats/errors.js";
import { noContent, withHeaders, type Reply } from "../../formats/reply.js";
import { factsOf } from "../../facts/answer-facts.js";
import { countReader, endWithKey } from "../../http/opened.js";
import { openSse } from "../../http/sse.js";
import { endWhenStopping } from "../../http/stopping.js";
import type { RequestService } from "../../service/requests.js";
import { countStreamReader } from "../../stream/counts.js";
import type { Piece, StreamLog } from "../../stream/stream-log.js";
import type { RelaySpan } from "../../trace/relay-span.js";
import { endpointsOf } from "../endpoint/endpoint.js";
import {
  bodyOf,
  bodyParts,
  catchUpHeaders,
  commonHeaders,
  cursorAfter,
  entityTag,
  isKnown,
  pieceEvents,
  readingOf,
  readingQuery,
  standing,
  toldOf,
  type Format,
  type Reading,
} from "./durable-form.js";

/** How long a long poll waits for records. */
const LONG_POLL_MS = 20_000;
/** The protocol lets event streams end about this often; their readers come back. */
const EVENTS_MS = 60_000;

const PATH = "/v2/requests/:id/stream";

const endpoint = endpointsOf<RequestService>("inference");

const readEndpoint = endpoint({
  method: "GET",
  path: PATH,
  right: "read",
  opensByTicketFor: "id",
  does: "Reads the records of a request as a stream of the Durable Streams protocol.",
  query: readingQuery,
  headers: {
    vary: "Accept",
    // An answer that caches may keep overrides this header.
    "cache-control": "no-store",
    // For browsers: the stated content type is right, and no other site's page may load the answer.
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
  },
  answers: {
    200: {
      says: "Records in the form that the client asks for, or events with them.",
      mediaType: ["application/json", "text/plain", "text/event-stream"],
    },
    204: { says: "A long poll has waited in vain, or the stream is closed." },
    304: { says: "The client has this answer already." },
  },
  refusals: ["unknown_request", "not_a_stream", "ahead_of_log", "resume_window_passed", "state_lost", "stream_limit"],
  async handle(asked, requests) {
    const { caller, query, incoming, outgoing } = asked;
    const id = asked.segment("id");
    // Only an answer that waits for records is a reader. Any other answer ends by itself.
    if (query.live !== undefined && incoming.method !== "HEAD") countReader(outgoing);
    const log = await requests.log(caller, id);
    const spanFrom = (from: number) => asked.readerSpan(requests, id, from);
    const source = { id, log, spanFrom, onBug: (error: unknown) => asked.onBug(error) };
    return readDurableStream(source, readingOf(query, incoming.headers), incoming, outgoing);
  },
});

const writeEndpoints = (["PUT", "POST", "DELETE"] as const).map((method) =>
  endpoint({
    method,
    path: PATH,
    does: "Refuses to write: only the worker that runs a request writes its stream.",
    answers: {},
    refusals: ["method_not_allowed"],
    handle: () => withHeaders(errorReply(fixedError("method_not_allowed", "readOnly")), { allow: "GET, HEAD" }),
  }),
);

export const durableStreamEndpoints = [readEndpoint, ...writeEndpoints];

/** The request to read. */
interface DurableStreamSource {
  /** The public id. */
  readonly id: string;
  readonly log: StreamLog;
  /** Begins the trace of a reader, if the reader is sampled. */
  readonly spanFrom: (from: number) => Promise<RelaySpan | undefined>;
  /** Called for each failure after an answer's head that is a bug and no refusal. */
  readonly onBug: (error: unknown) => void;
}

/**
 * Answers GET and HEAD.
 * @returns undefined if this function writes the answer itself, piece by piece
 * @throws InferenceError
 */
async function readDurableStream(
  source: DurableStreamSource,
  reading: Reading,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<Reply | undefined> {
  if (incoming.method === "HEAD") return tell(source, reading.format);
  switch (reading.live) {
    case undefined:
      return catchUp(source, reading, incoming, outgoing);
    case "long-poll":
      return longPoll(source, reading, incoming, outgoing);
    case "sse": {
      const first = await firstPiece(source.log, reading);
      const span = await source.spanFrom(first.next - first.records.length);
      sendEvents({ ...source, span }, reading, first, outgoing).catch(source.onBug);
      return undefined;
    }
  }
}

async function tell({ id, log }: DurableStreamSource, format: Format): Promise<Reply> {
  const tail = await log.tail();
  const headers = { ...commonHeaders(id, format), ...standing({ ...tail, isUpToDate: false }) };
  return { status: 200, headers, body: [] };
}

/**
 * Answers with all records that exist now. The protocol allows fewer, but its client, in the mode
 * that reads once, sends no second request. A long log is read page by page while the client takes
 * the bytes.
 */
async function catchUp(
  source: DurableStreamSource,
  { from, format }: Reading,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<Reply | undefined> {
  const { id, log } = source;
  if (from === "now") {
    const piece = await pieceAtTail(log);
    endWith(await source.spanFrom(piece.next), piece);
    return given(id, format, piece);
  }
  const first = await log.read(from);
  const tail = first.isUpToDate ? first : await log.tail();
  const headers = catchUpHeaders(id, format, from, tail);
  const span = await source.spanFrom(from);
  if (isKnown(headers["etag"] ?? "", incoming.headers)) {
    span?.end();
    return { status: 304, headers, body: [] };
  }
  const facts = factsOf(incoming);
  if (first.isUpToDate) {
    notePage(facts, first.records);
    endWith(span, first);
    return { status: 200, headers, body: [bodyOf(first, format, id)] };
  }
  outgoing.writeHead(200, headers);
  const noted = notedPages(log.upTo(tail.next, first), facts);
  const pages = span === undefined ? noted : span.follow(noted);
  const parts = Readable.from(bodyParts(pages, format, id), { highWaterMark: 1 });
  // A failure cuts the connection, so no client takes a part for the whole.
  pipeline(parts, outgoing).catch((error: unknown) => {
    if (!(error instanceof InferenceError) && !outgoing.destroyed) source.onBug(error);
  });
  return undefined;
}

/** Ends the span of a reader that takes these records at once. */
function endWith(span: RelaySpan | undefined, { records }: Piece): void {
  span?.saw(records);
  span?.end();
}

async function longPoll(
  { id, log, spanFrom }: DurableStreamSource,
  reading: Reading,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<Reply> {
  const { format, cursor } = reading;
  const first = await firstPiece(log, reading);
  const span = await spanFrom(first.next - first.records.length);
  let piece = first;
  if (first.records.length === 0 && !first.isOver) {
    piece = await nextPiece(log, first.next, outgoing).catch((error: unknown) => {
      span?.failed(error);
      span?.end();
      throw error;
    });
  }
  endWith(span, piece);
  const headers = { "stream-cursor": cursorAfter(cursor, Date.now(), Math.random()) };
  if (piece.records.length === 0) {
    return withHeaders(noContent, { "baton-request-id": id, ...standing(piece), ...headers });
  }
  notePage(factsOf(incoming), piece.records);
  const etag = entityTag(id, format, first.next - first.records.length, piece);
  const reply = withHeaders(given(id, format, piece), { ...headers, etag });
  return isKnown(etag, incoming.headers) ? { ...reply, status: 304, body: [] } : reply;
}

/**
 * Waits for records, until the time is over, the gateway stops, or the client has gone.
 * @throws InferenceError if the client's key is good no longer
 */
async function nextPiece(log: StreamLog, from: number, outgoing: ServerResponse): Promise<Piece> {
  const enough = new AbortController();
  const end = () => enough.abort();
  const timeout = setTimeout(end, LONG_POLL_MS);
  // The client may have gone during the first read.
  if (outgoing.destroyed) end();
  else outgoing.once("close", end);
  endWhenStopping(outgoing, end);
  let fault: InferenceError | undefined;
  endWithKey(outgoing, (found) => {
    fault = found;
    end();
  });
  const left = countStreamReader("durable");
  try {
    const piece = await log.next(from, enough.signal);
    if (fault !== undefined) throw fault;
    return piece;
  } finally {
    clearTimeout(timeout);
    left();
  }
}

/** Resolves when the stream has ended, the time is over, or the client has disconnected. */
async function sendEvents(
  { id, log, span }: DurableStreamSource & { readonly span: RelaySpan | undefined },
  { format, cursor }: Reading,
  first: Piece,
  outgoing: ServerResponse,
): Promise<void> {
  const sse = openSse(outgoing, { requestId: id, resumable: true, countsAs: "durable" });
  const enough = new AbortController();
  const end = () => enough.abort();
  const timeout = setTimeout(end, EVENTS_MS);
  sse.signal.addEventListener("abort", end, { once: true });
  let last = cursorAfter(cursor, Date.now(), Math.random());
  const facts = factsOf(outgoing.req);
  const add = (piece: Piece) => {
    notePage(facts, piece.records);
    span?.saw(piece.records);
    const now = cursorAfter(undefined, Date.now(), 0);
    if (Number(now) > Number(last)) last = now;
    return sse.addText(pieceEvents(piece, format, id, last));
  };
  try {
    if (!add(first) && !(await sse.room())) return;
    for await (const piece of log.follow(first, enough.signal)) if (!add(piece) && !(await sse.room())) return;
  } catch (error) {
    span?.failed(error);
    // Readers skip an unknown event and come back. The answer's status then tells them the error.
    await sse.send({ event: "error", data: errorBody(error) });
    if (!(error instanceof InferenceError)) throw error;
  } finally {
    clearTimeout(timeout);
    span?.end();
    sse.end();
  }
}

function firstPiece(log: StreamLog, { from }: Reading): Promise<Piece> {
  return from === "now" ? pieceAtTail(log) : log.begin(from);
}

async function pieceAtTail(log: StreamLog): Promise<Piece> {
  return { ...(await log.tail()), records: [], isUpToDate: true };
}

function given(id: string, format: Format, piece: Piece): Reply {
  const headers = { ...commonHeaders(id, format), ...standing(toldOf(piece, format, piece.records.length)) };
  return { status: 200, headers, body: [bodyOf(piece, format, id)] };
}
