/** A stream as its readers see it: a public id, and records in order. */

/** One record of a stream, as its worker wrote it. */
export interface StreamRecord {
  /** The record's place in the log, from 0. */
  readonly index: number;
  /** The text of a `TokenRecord`. */
  readonly json: string;
  /** Whether this is the last record of its stream. */
  readonly final: boolean;
  /**
   * The text that choice 0 gained, as a JSON string, if the record says nothing else; otherwise
   * undefined. Nearly every record is like that, and then needs no parsing.
   */
  readonly plainText: string | undefined;
  /** With a final record of the log, the text of the worker's timings; absent if there are none. */
  readonly note?: string;
  /** Whether the record came from the log, because its message did not come; absent: false. */
  readonly fillsGap?: true;
}

/** An admitted request whose records many readers can read at once. */
export interface OpenStream {
  /** The public id. */
  readonly id: string;
  /** Whether an earlier request under the same key began the stream. */
  readonly isRepeated?: boolean;
  /**
   * Yields the records from index `from` to the final one, each once and in order, as many at a
   * time as are there. Ends early when `signal` aborts. A reader that falls behind holds no more
   * than its last page.
   * @throws InferenceError `ahead_of_log`, `resume_window_passed`, `unknown_request` or, if Redis
   * stays away, `unavailable`
   */
  read(from: number, signal: AbortSignal): AsyncIterable<readonly StreamRecord[]>;
  /** Ends the request at its next iteration, unless it has ended. */
  cancel(): Promise<void>;
}
