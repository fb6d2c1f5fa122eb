/**
 * The forms of the Durable Streams protocol (github.com/durable-streams/durable-streams,
 * PROTOCOL.md, sections 5.5 to 5.8, 8 to 10): reads a reader's request, and writes a piece of a
 * stream. All functions are pure.
 */
import type { IncomingHttpHeaders } from "node:http";
import { fixedError, InferenceError } from "#shared/errors.js";
import { acceptsByName } from "../../http/headers.js";
import { eventText } from "../../http/sse.js";
import type { StreamRecord } from "../../stream/open-stream.js";
import { textOf } from "../../stream/records.js";
import type { Tail } from "../../stream/page-status.js";
import type { Piece } from "../../stream/stream-log.js";
import { ticketParameter, type Parameter, type ParameterValues } from "../endpoint/parameters.js";
import { chunkWriter } from "./ai-chunks.js";

/**
 * The records as a JSON array, the text of choice 0 alone, or that text as a JSON array of chunks.
 */
export type Format = (typeof formats)[number];
const formats = ["json", "text", "ai-sdk", "ag-ui"] as const;

/** A reader's request. */
export interface Reading {
  /** The index of the first record to send; `now` means after the newest record. */
  readonly from: number | "now";
  readonly live: "long-poll" | "sse" | undefined;
  /** The `Stream-Cursor` of the previous answer. */
  readonly cursor: number | undefined;
  readonly format: Format;
}

/**
 * Digits of every offset: enough for any index. All offsets have the same length, so that they sort
 * as texts.
 */
const OFFSET_DIGITS = 10;
/** Cursors count intervals of this length since this time. The protocol sets both values. */
const CURSOR_INTERVAL_MS = 20_000;
const CURSOR_EPOCH_MS = Date.UTC(2024, 9, 9);
/** A reader that already has this interval's cursor gets a cursor that is up to an hour later. */
const CURSOR_JITTER_MS = 3_600_000;

const offset: Parameter<Reading["from"] | undefined> = {
  schema: { type: "string", pattern: `^(-1|now|[0-9]{${OFFSET_DIGITS}})$`, default: "-1" },
  says: "-1 for the start, now for the end, or the Stream-Next-Offset of an earlier answer.",
  read([given]) {
    if (given === undefined || given === "now") return given;
    if (given === "-1") return 0;
    if (given.length === OFFSET_DIGITS && /^\d+$/.test(given)) return Number(given);
    throw new InferenceError(
      "invalid_argument",
      "offset must be -1, now, or the Stream-Next-Offset of an earlier answer, unchanged",
    );
  },
};

const live: Parameter<Reading["live"]> = {
  schema: { enum: ["long-poll", "sse"] },
  says: "How to wait for further records. By default the answer has the records that exist now.",
  read([given]) {
    if (given === undefined || given === "long-poll" || given === "sse") return given;
    throw new InferenceError("invalid_argument", `live must be long-poll or sse, not '${given}'`);
  },
};

const cursor: Parameter<Reading["cursor"]> = {
  schema: { type: "string", pattern: "^[0-9]{1,15}$" },
  says: "The Stream-Cursor of the answer before.",
  read([given]) {
    if (given === undefined) return undefined;
    if (/^\d{1,15}$/.test(given)) return Number(given);
    throw new InferenceError("invalid_argument", "cursor must be the Stream-Cursor of the answer before");
  },
};

/** The parameter serves readers that cannot choose headers, such as a browser's EventSource. */
const format: Parameter<Format | undefined> = {
  schema: { enum: formats },
  says: "By default as the header Accept says.",
  read([given]) {
    const known = formats.find((one) => one === given);
    if (known !== undefined || given === undefined) return known;
    throw new InferenceError("invalid_argument", `format must be one of ${formats.join(", ")}, not '${given}'`);
  },
};

export const readingQuery = { offset, live, cursor, format, ticket: ticketParameter };

/** @throws InferenceError `invalid_argument` */
export function readingOf(
  { offset, live, cursor, format }: Omit<ParameterValues<typeof readingQuery>, "ticket">,
  headers: IncomingHttpHeaders,
): Reading {
  if (live !== undefined && offset === undefined) throw fixedError("invalid_argument", "offsetMissing");
  return { from: offset ?? 0, live, cursor, format: format ?? usualFormat(headers) };
}

function usualFormat(headers: IncomingHttpHeaders): Format {
  return acceptsByName(headers, "text/plain") && !acceptsByName(headers, "application/json") ? "text" : "json";
}

/** The offset of the position before the record of this index. */
export function offsetOf(index: number): string {
  return String(index).padStart(OFFSET_DIGITS, "0");
}

/**
 * Makes the cursor of an answer for which the reader has waited. The new cursor is always greater
 * than the reader's last cursor, so no cache can give a reader the same answer again and again.
 * @param given the reader's last cursor
 * @param random in [0, 1)
 */
export function cursorAfter(given: number | undefined, now: number, random: number): string {
  const interval = Math.floor((now - CURSOR_EPOCH_MS) / CURSOR_INTERVAL_MS);
  if (given === undefined || given < interval) return String(interval);
  return String(given + 1 + Math.floor((random * CURSOR_JITTER_MS) / CURSOR_INTERVAL_MS));
}

/**
 * The end of the stream as the answer tells it in this form. TanStack AI's transport drops records
 * that arrive together with the news that the stream is closed. So readers of AG-UI's events get
 * that news at their next read, as if the stream had closed a moment after the last record.
 * @param count how many records the answer has
 */
export function toldOf<Standing extends Tail>(standing: Standing, format: Format, count: number): Standing {
  return format === "ag-ui" && count > 0 ? { ...standing, isOver: false } : standing;
}

/** The headers that tell a reader's place, after the reader has read up to `next`. */
export function standing({ next, isUpToDate, isOver }: Tail & { readonly isUpToDate: boolean }) {
  return {
    "stream-next-offset": offsetOf(next),
    ...(isUpToDate && { "stream-up-to-date": "true" }),
    ...(isOver && { "stream-closed": "true" }),
  };
}

/** The headers of each answer with the stream's content type. */
export function commonHeaders(id: string, format: Format) {
  const type = format === "text" ? "text/plain; charset=utf-8" : "application/json";
  return { "content-type": type, "baton-request-id": id };
}

/**
 * Names the content of an answer. The tag changes when the last of these records turns out to be
 * the last of the stream.
 */
export function entityTag(id: string, format: Format, from: number, { next, isOver }: Tail): string {
  return `"${id}:${format}:${offsetOf(from)}:${offsetOf(next)}${isOver ? ":c" : ""}"`;
}

/** Whether the header If-None-Match names this entity tag (RFC 9110, section 13.1.2). */
export function isKnown(tag: string, { "if-none-match": known }: IncomingHttpHeaders): boolean {
  return known !== undefined && known.split(",", 16).some((one) => one.trim().replace(/^W\//, "") === tag);
}

export function bodyOf({ records }: Piece, format: Format, id: string): string {
  const body = written(records, format, id);
  return format === "text" ? body : `[${body}]`;
}

/** Yields the body of many records in parts. No part is empty. */
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

/** The records in a form, without an array's brackets. */
function written(records: readonly StreamRecord[], format: Format, id: string): string {
  if (format === "json") return records.map(({ json }) => json).join();
  if (format === "text") return records.map(textOf).join("");
  const chunks = records.map(chunkWriter(format, id));
  return chunks.filter((some) => some !== "").join();
}

/** The headers of an answer with all records that exist now. Caches may keep the answer. */
export function catchUpHeaders(id: string, format: Format, from: number, end: Tail): Record<string, string> {
  const tail = toldOf(end, format, end.next - from);
  return {
    ...commonHeaders(id, format),
    ...standing({ ...tail, isUpToDate: true }),
    etag: entityTag(id, format, from, tail),
    // While the stream is open, the same request may later get more records.
    "cache-control": tail.isOver ? "private, max-age=60, stale-while-revalidate=300" : "private, no-cache",
  };
}

/**
 * The events of a piece: the records, if they say anything in this form, and then the reader's
 * place. Both events are a single text, so that no reader has the records without the place to
 * continue at.
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
