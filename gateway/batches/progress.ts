/**
 * How far a batch has come in its file: the place before which all lines are done, and the lines
 * done beyond that place, because lines end in another order than they begin. A process writes this
 * down as a checkpoint, from which another process continues.
 */
import type { Line, LinePlace } from "./json-lines.js";

export interface Checkpoint extends LinePlace {
  /** The numbers of the lines beyond that place that are done. */
  readonly beyond: readonly number[];
}

export const START: Checkpoint = { offset: 0, line: 0, beyond: [] };

interface Entry {
  readonly number: number;
  readonly end: number;
  isDone: boolean;
}

export class Progress {
  #place: LinePlace;
  /** The lines read so far, from the first unfinished line on. */
  #entries: Entry[] = [];
  readonly #byNumber = new Map<number, Entry>();
  readonly #before: ReadonlySet<number>;

  constructor({ offset, line, beyond }: Checkpoint) {
    this.#place = { offset, line };
    this.#before = new Set(beyond);
  }

  /** How many lines are read, from the first unfinished line on. */
  get window(): number {
    return this.#entries.length;
  }

  /**
   * Notes that the caller has read a line. The caller reads lines in the order of the file.
   * @returns whether the line still has to run
   */
  read({ number, end }: Line): boolean {
    const entry = { number, end, isDone: this.#before.has(number) };
    this.#entries.push(entry);
    this.#byNumber.set(number, entry);
    this.#advance();
    return !entry.isDone;
  }

  done(number: number): void {
    const entry = this.#byNumber.get(number);
    if (entry !== undefined) entry.isDone = true;
    this.#advance();
  }

  checkpoint(): Checkpoint {
    const read = this.#entries.filter(({ isDone }) => isDone).map(({ number }) => number);
    const last = this.#entries.at(-1)?.number ?? this.#place.line;
    const notRead = [...this.#before].filter((number) => number > last);
    return { ...this.#place, beyond: [...read, ...notRead] };
  }

  #advance(): void {
    let count = 0;
    for (const entry of this.#entries) {
      if (!entry.isDone) break;
      count++;
      this.#byNumber.delete(entry.number);
      this.#place = { offset: entry.end, line: entry.number };
    }
    if (count > 0) this.#entries = this.#entries.slice(count);
  }
}
