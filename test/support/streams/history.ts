/**
 * The histories of stream clients: everything that an application was given, in order, with what
 * was asked and how each connection ended.
 */
import type { StreamAsk } from "./ask.js";

/** What an application sees at once. */
export interface Piece {
  /**
   * Index of the record that it comes from, or whose text it completes; undefined where the path
   * tells none.
   */
  readonly index: number | undefined;
  /** Text of the first choice. */
  readonly text: string;
  /** The whole record, where records are sent. */
  readonly record: string | undefined;
  /** When it came, on `performance.now()`'s clock. */
  readonly at: number;
  /** Number of the connection over which it came. */
  readonly connection: number;
}

export interface Connection {
  readonly gateway: string;
  readonly path: string;
  readonly begunAt: number;
  /** How it ended, in words. */
  end: string;
}

/**
 * How a client reads. `completions` and `generate_stream` submit and read at once; `events` and
 * `websocket` submit in the background and read the records. A client that is cut off goes on at
 * the records, at another gateway.
 */
export type Manner = "completions" | "generate_stream" | "events" | "websocket";

export type StreamOutcome =
  | { readonly kind: "finished" }
  | { readonly kind: "failed"; readonly code: string; readonly what: string }
  /** The client's patience is over. */
  | { readonly kind: "unresolved"; readonly what: string };

export interface Reading {
  readonly ask: StreamAsk;
  readonly manner: Manner;
  /** The public id; undefined until the client was told. */
  id: string | undefined;
  readonly pieces: Piece[];
  readonly connections: Connection[];
  readonly begunAt: number;
  outcome: StreamOutcome | undefined;
}

/** Whether its client is shown every record. The others are shown what text there is. */
export function readsRecords({ manner }: Pick<Reading, "manner">): boolean {
  return manner === "events" || manner === "websocket";
}

/**
 * The longest wait of the application for its next piece, in milliseconds, without the wait for the
 * first.
 */
export function longestPauseMs({ pieces }: Pick<Reading, "pieces">): number {
  let longest = 0;
  for (const [i, { at }] of pieces.entries()) longest = Math.max(longest, at - (pieces[i - 1]?.at ?? at));
  return longest;
}
