/** One connection to the records of a stream, from an index on: what it has read so far can be waited for, and it can be left. */
import { readEventSource, type SourceEnd } from "./event-source.js";

export interface ReadRecords {
  /** The first one is the record at the index that was asked for. */
  readonly records: readonly string[];
  readonly end: SourceEnd;
}

export class Reader {
  readonly records: string[] = [];
  readonly ended: Promise<ReadRecords>;
  readonly #leaving = new AbortController();
  readonly #most: number;
  #waiting: (() => void)[] = [];

  /** @param after index of the last record that the client has. @param most it leaves when it has read so many. */
  constructor(gateway: string, id: string, after = -1, most = Infinity) {
    this.#most = most;
    this.ended = readEventSource({
      url: `${gateway}/v2/requests/${id}/events`,
      headers: after < 0 ? {} : { "last-event-id": String(after) },
      signal: this.#leaving.signal,
      onEvent: ({ id: index, data }) => this.#take(Number(index), data, after + 1 + this.records.length),
    }).then((end) => {
      this.#wake();
      return { records: this.records, end };
    });
  }

  leave(): void {
    this.#leaving.abort();
  }

  /** Resolves when so many have been read. @throws Error when the stream ends before */
  async reach(count: number): Promise<void> {
    let over = false;
    void this.ended.then(() => (over = true));
    while (this.records.length < count) {
      if (over) throw new Error(`the stream ended after ${this.records.length} of ${count} records`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #take(index: number, data: string, due: number): boolean {
    if (index !== due) throw new Error(`record ${index} came where ${due} was due`);
    this.records.push(data);
    this.#wake();
    return this.records.length < this.#most;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
