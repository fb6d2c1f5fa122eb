/** The figures of streams and their readers in this process. */
import { cells } from "#shared/metrics/cells.js";

/** How a reader gets records: by events, by a WebSocket, or by the Durable Streams protocol. */
export type ReaderKind = "sse" | "websocket" | "durable";

const ofKind = (kind: ReaderKind) => cells.counter("baton_stream_readers", { kind });
const readers = { sse: ofKind("sse"), websocket: ofKind("websocket"), durable: ofKind("durable") };
const gaps = cells.counter("baton_stream_gaps_total");
const resumes = cells.counter("baton_stream_resumes_total");

/** Counts a reader until it leaves. @returns a function to call when it leaves */
export function countStreamReader(kind: ReaderKind): () => void {
  const cell = readers[kind];
  cells.add(cell);
  return () => cells.add(cell, -1);
}

/** Counts records that came from the log, because their messages did not come. */
export function countGap(): void {
  cells.add(gaps);
}

/** Counts a reader that begins. @param first index of the first record that it wants */
export function countResume(first: number): void {
  if (first > 0) cells.add(resumes);
}
