/**
 * The histories of stream clients: the request, every piece that the application got, in order, and
 * how each connection ended.
 */
import type { StreamAsk } from "./ask.js";

/** A piece that an application gets at once. */
export interface Piece {
  /**
   * Index of the piece's record, or of the record whose text the piece completes; undefined if the
   * path names no index.
   */
  readonly index: number | undefined;
  /** Text of the first choice. */
  readonly text: string;
  /** The whole record, if the path sends records. */
  readonly record: string | undefined;
  /** Time of arrival, on the clock of `performance.now()`. */
  readonly at: number;
  /** Number of the connection that brought the piece. */
  readonly connection: number;
}

export interface Connection {
  readonly gateway: string;
  readonly path: string;
  readonly begunAt: number;
  /** The end, in words. */
  end: string;
}

/**
 * How a client reads. `completions` and `generate_stream` submit and read at once; `events` and
 * `websocket` submit in the background and read the records. After a cut, a client reads the
 * records from another gateway; a client of `grpc` submits again under its key, and resumes.
 */
export type Manner = "completions" | "generate_stream" | "events" | "websocket" | "grpc";

export type StreamOutcome =
  | { readonly kind: "finished" }
  | { readonly kind: "failed"; readonly code: string; readonly what: string }
  /** The client's patience is over. */
  | { readonly kind: "unresolved"; readonly what: string };

export interface Reading {
  readonly ask: StreamAsk;
  readonly manner: Manner;
  /** The public id; undefined until the client knows the id. */
  id: string | undefined;
  readonly pieces: Piece[];
  readonly connections: Connection[];
  readonly begunAt: number;
  outcome: StreamOutcome | undefined;
}

/** Whether the client sees every record. Other clients see only texts. */
export function readsRecords({ manner }: Pick<Reading, "manner">): boolean {
  return manner === "events" || manner === "websocket";
}

/**
 * The application's longest wait for its next piece, in milliseconds. The wait for the first piece
 * does not count.
 */
export function longestPauseMs({ pieces }: Pick<Reading, "pieces">): number {
  let longest = 0;
  for (const [i, { at }] of pieces.entries()) longest = Math.max(longest, at - (pieces[i - 1]?.at ?? at));
  return longest;
}
