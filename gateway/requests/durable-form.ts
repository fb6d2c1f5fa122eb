/**
 * The forms of the Durable Streams protocol (github.com/durable-streams/durable-streams,
 * PROTOCOL.md, sections 5.5 to 5.8, 8 to 10): what a reader asks, and how a piece of a stream is
 * told. All functions are pure.
 */
import type { IncomingMessage } from "node:http";
import { fixedError, InferenceError } from "#shared/errors.js";
import { acceptsByName } from "../http/headers.js";
import { readQuery } from "../http/query.js";
import { eventText } from "../http/sse.js";
import type { StreamRecord } from "../stream/open-stream.js";
import { textOf } from "../stream/records.js";
import type { Tail } from "../stream/page-status.js";
import type { Piece } from "../stream/stream-log.js";
import { chunkWriter } from "./ai-chunks.js";

/** The records as a JSON array, the text of choice 0 alone, or that as a JSON array of chunks. */
export type Format = (typeof FORMATS)[number];
const FORMATS = ["json", "text", "ai-sdk", "ag-ui"] as const;

/** What a reader asks for. */
export interface Asked {
  /** The index of the first record wanted; `now` is behind the last one that is there. */
  readonly from: number | "now";
  readonly live: "long-poll" | "sse" | undefined;
  /** The `Stream-Cursor` of the answer before. */
  readonly cursor: number | undefined;
  readonly format: Format;
}

/** Digits of every offset: enough for any index, and always so many, so that offsets sort. */
const OFFSET_DIGITS = 10;
/** Cursors count intervals of this length from this time on, both taken from the protocol. */
const CURSOR_INTERVAL_MS = 20_000;
const CURSOR_EPOCH_MS = Date.UTC(2024, 9, 9);
/** A reader that has this interval's cursor already gets one that is later by up to an hour. */
const CURSOR_JITTER_MS = 3_600_000;

/** @throws InferenceError `invalid_argument` */
export function readAsked(incoming: IncomingMessage): Asked {
  const { offset, live, cursor, format } = readQuery(incoming, ["offset", "live", "cursor", "format"]);
  if (live !== undefined && live !== "long-poll" && live !== "sse") {
    throw new InferenceError("invalid_argument", `live must be long-poll or sse, not '${live}'`);
  }
  if (live !== undefined && offset === undefined) throw fixedError("invalid_argument", "offsetMissing");
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) {
    throw new InferenceError("invalid_argument", "cursor must be the Stream-Cursor of the answer before");
  }
  return {
    from: readOffset(offset ?? "-1"),
    live,
    cursor: cursor === undefined ? undefined : Number(cursor),
    format: readFormat(format, incoming),
  };
}

function readOffset(offset: string): Asked["from"] {
  if (offset === "-1") return 0;
  if (offset === "now") return offset;
  if (offset.length === OFFSET_DIGITS && /^\d+$/.test(offset)) return Number(offset);
  throw new InferenceError(
    "invalid_argument",
    "offset must be -1, now, or the Stream-Next-Offset of an earlier answer, unchanged",
  );
}

/** The parameter is for readers that choose no headers, such as a browser's EventSource. */
function readFormat(format: string | undefined, { headers }: IncomingMessage): Format {
  const known = FORMATS.find((one) => one === format);
  if (known !== undefined) return known;
  if (format !== undefined) {
    throw new InferenceError("invalid_argument", `format must be one of ${FORMATS.join(", ")}, not '${format}'`);
  }
  return acceptsByName(headers, "text/plain") && !acceptsByName(headers, "application/json") ? "text" : "json";
}

/** The offset of the position before the record of this index. */
export function offsetOf(index: number): string {
  return String(index).padStart(OFFSET_DIGITS, "0");
}

/**
 * Makes the cursor of an answer that was waited for. It is always greater than the one that the
 * reader had, so no cache can give a reader the same answer again and again.
 * @param random in [0, 1)
 */
export function cursorAfter(given: number | undefined, now: number, random: number): string {
  const interval = Math.floor((now - CURSOR_EPOCH_MS) / CURSOR_INTERVAL_MS);
  if (given === undefined || given < interval) return String(interval);
  return String(given + 1 + Math.floor((random * CURSOR_JITTER_MS) / CURSOR_INTERVAL_MS));
}

/**
 * What a reader of a form is told of where it stands. TanStack AI's transport drops records with
 * which it is told that the stream is closed. Readers of AG-UI's events are told that when they
 * come back, as if the stream had been closed a moment after its last record.
 * @param count how many records it is given with that
 */
export function toldOf<Standing extends Tail>(standing: Standing, format: Format, count: number): Standing {
  return format === "ag-ui" && count > 0 ? { ...standing, isOver: false } : standing;
}

/** The headers that say where a reader stands who has read up to `next`. */
export function standing({ next, isUpToDate, isOver }: Tail & { readonly isUpToDate: boolean }) {
  return {
    "stream-next-offset": offsetOf(next),
    ...(isUpToDate && { "stream-up-to-date": "true" }),
    ...(isOver && { "stream-closed": "true" }),
  };
}

/** The headers of an answer that has the stream's type. */
export function commonHeaders(id: string, format: Format) {
  const type = format === "text" ? "text/plain; charset=utf-8" : "application/json";
  return { "content-type": type, "baton-request-id": id };
}

/** Names what was read; it differs once the same records turn out to be the last ones. */
export function entityTag(id: string, format: Format, from: number, { next, isOver }: Tail): string {
  return `"${id}:${format}:${offsetOf(from)}:${offsetOf(next)}${isOver ? ":c" : ""}"`;
}

/** Whether the header If-None-Match names this entity tag (RFC 9110, section 13.1.2). */
export function isKnown(tag: string, { headers }: IncomingMessage): boolean {
  const known = headers["if-none-match"];
  return known !== undefined && known.split(",", 16).some((one) => one.trim().replace(/^W\//, "") === tag);
}

/** The body of a piece. */
export function bodyOf({ records }: Piece, format: Format, id: string): string {
  const body = written(records, format, id);
  return format === "text" ? body : `[${body}]`;
}

/** Yields the body of many records in parts, none of which is empty. */
export async function* bodyParts(
  pages: AsyncIterable<readonly StreamRecord[]>,
  format: Format,
  id: string,
): AsyncGenerator<string, void> {
  let before = format === "text" ? "" : "[";
  for await (const records of pages) {
    const part = written(records, format, id);
    if (part === "") continue;
    yield before + part;
    before = format === "text" ? "" : ",";
  }
  if (format !== "text") yield before === "[" ? "[]" : "]";
}

/** What records say in a form, without the brackets of an array. */
function written(records: readonly StreamRecord[], format: Format, id: string): string {
  if (format === "json") return records.map(({ json }) => json).join();
  if (format === "text") return records.map(textOf).join("");
  const chunks = records.map(chunkWriter(format, id));
  return chunks.filter((some) => some !== "").join();
}

/** The headers of an answer with all that was there when it was asked for, which may be cached. */
export function catchUpHeaders(id: string, format: Format, from: number, end: Tail): Record<string, string> {
  const tail = toldOf(end, format, end.next - from);
  return {
    ...commonHeaders(id, format),
    ...standing({ ...tail, isUpToDate: true }),
    etag: entityTag(id, format, from, tail),
    // What ends at the end of an open stream may have grown when it is asked for again.
    "cache-control": tail.isOver ? "private, max-age=60, stale-while-revalidate=300" : "private, no-cache",
  };
}

/**
 * The events of a piece: its records, if it says anything, and where its reader stands then. Both
 * are one text, so that no reader has the records without knowing where to go on.
 */
export function pieceEvents(piece: Piece, format: Format, id: string, cursor: string): string {
  const { next, isUpToDate, isOver } = toldOf(piece, format, piece.records.length);
  const body = bodyOf(piece, format, id);
  const data = body === "" || body === "[]" ? "" : eventText({ event: "data", data: body });
  const control = {
    streamNextOffset: offsetOf(next),
    ...(!isOver && { streamCursor: cursor }),
    ...(isUpToDate && { upToDate: true }),
    ...(isOver && { streamClosed: true }),
  };
  return data + eventText({ event: "control", data: JSON.stringify(control) });
}
