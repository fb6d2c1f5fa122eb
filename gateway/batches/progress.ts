/**
 * How far a batch has come in its file: up to which line all are done, and which beyond it are,
 * since lines end in another order than they begin. What is written of it is a checkpoint, with
 * which another process goes on.
 */
import type { Line, LinePlace } from "./json-lines.js";

export interface Checkpoint extends LinePlace {
  /** The numbers of the lines beyond that place which are done. */
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
  /** Lines that were read, from the first that is not done on. */
  #entries: Entry[] = [];
  readonly #byNumber = new Map<number, Entry>();
  readonly #before: ReadonlySet<number>;

  constructor({ offset, line, beyond }: Checkpoint) {
    this.#place = { offset, line };
    this.#before = new Set(beyond);
  }

  /** How many lines were read from the first that is not done on. */
  get window(): number {
    return this.#entries.length;
  }

  /**
   * Notes that a line was read, which come in the order of the file.
   * @returns whether it is still to be done
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
