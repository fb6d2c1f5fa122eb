/**
 * W3C Trace Context: the headers by which a caller says to which trace a request belongs. A
 * malformed header counts as absent, as the standard asks. A request never fails because of it.
 */
import { randomBytes } from "node:crypto";

/** The ids of a span, as hexadecimal digits. */
export interface SpanIds {
  /** 32 digits; the same for all spans of a trace. */
  readonly traceId: string;
  /** 16 digits. */
  readonly spanId: string;
}

/** The caller's span, and whether the caller records its trace. */
export interface CallersSpan extends SpanIds {
  readonly sampled: boolean;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?$/;
/** Longer headers are not read. A later version of the standard may add some fields. */
const LONGEST_TRACEPARENT = 256;
/** The most bytes of `tracestate` that travel with a request. */
const LONGEST_STATE = 512;

/** @returns undefined for an absent or malformed header */
export function readTraceparent(header: unknown): CallersSpan | undefined {
  if (typeof header !== "string" || header.length > LONGEST_TRACEPARENT) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = TRACEPARENT.exec(header) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/**
 * @returns as many whole members of the header, from its left, as 512 bytes hold; undefined if that
 *   is none, or the header is no printable text
 */
export function readTracestate(header: unknown): string | undefined {
  if (typeof header !== "string" || !/^[\t\x20-\x7e]+$/.test(header)) return undefined;
  if (header.length <= LONGEST_STATE) return header;
  const end = header.lastIndexOf(",", LONGEST_STATE);
  return end > 0 ? header.slice(0, end) : undefined;
}

/** The header `traceparent` or `traceresponse` that names a sampled span. */
export function writeTraceparent({ traceId, spanId }: SpanIds): string {
  return `00-${traceId}-${spanId}-01`;
}

/** @param traceId of the trace that the span belongs to; absent: of a new trace */
export function newSpan(traceId = randomHex(16)): SpanIds {
  return { traceId, spanId: randomHex(8) };
}

/** Random bytes for some hundreds of spans: a call of the system for each took 2 µs. */
const pool = { bytes: Buffer.alloc(0), at: 0 };
const POOL_BYTES = 4_096;

function randomHex(bytes: number): string {
  if (pool.at + bytes > pool.bytes.length) {
    pool.bytes = randomBytes(POOL_BYTES);
    pool.at = 0;
  }
  return pool.bytes.toString("hex", pool.at, (pool.at += bytes));
}
