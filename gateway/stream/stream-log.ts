/**
 * A stream for readers that take it in pieces, each from an index on: the present records, or the
 * next. Between two pieces such a reader costs nothing here. Present records come from the log, and
 * next records through a cursor, as for every other reader (`cursor.ts`).
 */
import { fixedError } from "#shared/errors.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { Cursor, FIRST_MS } from "./cursor.js";
import { AWAY_MS } from "./live-stream.js";
import type { StreamRecord } from "./open-stream.js";
import { pageStatus, tailOf, type Tail } from "./page-status.js";
import { recordOf } from "./records.js";
import type { Relay } from "./relay.js";

export interface Piece {
  readonly records: readonly StreamRecord[];
  /** The index after these records. */
  readonly next: number;
  /** Whether the stream has no more records now. */
  readonly isUpToDate: boolean;
  /** Whether the stream will never have more. */
  readonly isOver: boolean;
}

/** A piece grows by further pages of the log until it has this many characters. */
const PIECE_CHARS = 32_768;
/** No log reaches this index. */
const BEYOND = 1_000_000_000;

export class StreamLog {
  readonly #relay: Relay;
  readonly #address: RequestAddress;

  /** @param address of a generator's request */
  constructor(relay: Relay, address: RequestAddress) {
    this.#relay = relay;
    this.#address = address;
  }

  /**
   * The present end of the log.
   * @throws InferenceError `unknown_request`, `resume_window_passed` or `unavailable`
   */
  async tail(): Promise<Tail> {
    const page = await this.#relay.logs.readSurely(this.#address, BEYOND, { budgetMs: FIRST_MS });
    if (page.said === "records") throw new TypeError("a log has more records than a log can have");
    return tailOf(page);
  }

  /**
   * Reads the records of the log from an index on.
   * @throws InferenceError `unknown_request`, `ahead_of_log`, `resume_window_passed` or
   * `unavailable`
   */
  async read(from: number, budgetMs = FIRST_MS): Promise<Piece> {
    return this.#read(await this.#readLog(from, budgetMs));
  }

  /**
   * Gives the present records from an index on. If a live stream covers the index, the records come
   * from there instead of the log.
   * @throws InferenceError as `read` does
   */
  async begin(from: number): Promise<Piece> {
    const live = this.#relay.liveStream(this.#address);
    if (live?.covers(from) !== true) return this.read(from);
    const found = live.from(from);
    if (found === "behind") return this.read(from);
    if (found === "ahead" || found === "over") {
      return { records: [], next: from, isUpToDate: true, isOver: found === "over" };
    }
    return this.#read(this.#pieceOf(found, from));
  }

  /**
   * Waits for records at the end of the log, which is index `from`. The piece has none if `signal`
   * aborts before.
   * @throws InferenceError
   */
  async next(from: number, signal: AbortSignal): Promise<Piece> {
    for await (const records of Cursor.at(this.#relay, this.#address, from).pages(signal)) {
      return this.#pieceOf(records, from);
    }
    return { records: [], next: from, isUpToDate: true, isOver: !signal.aborted };
  }

  /**
   * Yields all pieces behind `first`, until the final record or until `signal` aborts.
   * @throws InferenceError
   */
  async *follow(first: Piece, signal: AbortSignal): AsyncGenerator<Piece, void> {
    const leave = this.#relay.readers.join(this.#address, false);
    let piece = first;
    try {
      while (!piece.isUpToDate && !signal.aborted) yield (piece = await this.#readLog(piece.next, AWAY_MS));
      if (piece.isOver || signal.aborted) return;
      for await (const records of Cursor.at(this.#relay, this.#address, piece.next).pages(signal)) {
        yield (piece = this.#pieceOf(records, piece.next));
      }
    } finally {
      leave(piece.isOver);
    }
  }

  /**
   * Yields the records of the log from `first` up to index `end`, which the log reaches.
   * @throws InferenceError
   */
  async *upTo(end: number, first: Piece): AsyncGenerator<readonly StreamRecord[], void> {
    yield first.records;
    for (let { next } = first; next < end;) {
      const piece = await this.#readLog(next, AWAY_MS);
      if (piece.records.length === 0) throw fixedError("state_lost", "recordsGone");
      yield piece.records.slice(0, end - next);
      next = piece.next;
    }
  }

  /** The reader is likely to come again, even if the piece goes to the end of the log. */
  #read(piece: Piece): Piece {
    if (!piece.isOver) this.#relay.readers.visit(this.#address);
    return piece;
  }

  async #readLog(from: number, budgetMs: number): Promise<Piece> {
    const records: StreamRecord[] = [];
    let chars = 0;
    for (let next = from; ; next = from + records.length) {
      const page = await this.#relay.logs.readSurely(this.#address, next, { budgetMs });
      if (page.said !== "records") {
        const now = pageStatus(page, next, records.length === 0 ? "nothing" : "records", true);
        if (now.kind === "refused") throw now.error;
        if (now.kind === "final") records.push(now.record);
        return { records, next: from + records.length, isUpToDate: true, isOver: now.kind !== "wait" };
      }
      for (const json of page.records) {
        const record = recordOf(from + records.length, json, page.note);
        records.push(record);
        chars += json.length;
        if (record.final) return { records, next: from + records.length, isUpToDate: true, isOver: true };
      }
      if (chars >= PIECE_CHARS) return { records, next: from + records.length, isUpToDate: false, isOver: false };
    }
  }

  /** @param records from a cursor or a live stream, which may already have more */
  #pieceOf(records: readonly StreamRecord[], from: number): Piece {
    const next = from + records.length;
    const isOver = records.at(-1)?.final === true;
    const live = this.#relay.liveStream(this.#address);
    const isUpToDate = isOver || (live?.hasFailed === false && live.from(next) === "ahead");
    return { records, next, isUpToDate, isOver };
  }
}
