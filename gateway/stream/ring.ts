/** The last records of a stream, for readers that keep up. Bounded by count and size; who falls behind reads the log. */
import type { StreamRecord } from "../inference.js";

/** Of text, which is a byte a character unless it has one beyond Latin-1. */
const LIMIT = { records: 128, chars: 65_536 };

export class Ring {
  /** By index modulo the length. */
  readonly #slots: (StreamRecord | undefined)[] = [];
  /** Index of the oldest record held; `next` while there is none. */
  #first: number;
  #next: number;
  #chars = 0;

  constructor(next: number) {
    this.#first = next;
    this.#next = next;
  }

  /** Index of the record that is pushed next. */
  get next(): number {
    return this.#next;
  }

  at(index: number): StreamRecord | undefined {
    return index >= this.#first && index < this.#next ? this.#slots[index % LIMIT.records] : undefined;
  }

  /** All from `index` on; none where that is not held. */
  from(index: number): StreamRecord[] {
    const records: StreamRecord[] = [];
    for (let i = index; i < this.#next; i++) {
      const record = this.at(i);
      if (record === undefined) return [];
      records.push(record);
    }
    return records;
  }

  /** How large those from `index` on are. */
  charsFrom(index: number): number {
    let chars = 0;
    for (let i = Math.max(index, this.#first); i < this.#next; i++) chars += this.at(i)?.json.length ?? 0;
    return chars;
  }

  /** Whether another of this size pushes none from `index` on out. */
  hasRoom(chars: number, index: number): boolean {
    const held = this.#next - index;
    if (held === 0) return true;
    if (held >= LIMIT.records) return false;
    return this.#chars + chars <= LIMIT.chars || this.charsFrom(index) + chars <= LIMIT.chars;
  }

  /** @param record of index `next`. */
  push(record: StreamRecord): void {
    if (this.#next - this.#first === LIMIT.records) this.#drop();
    this.#slots[this.#next % LIMIT.records] = record;
    this.#next++;
    this.#chars += record.json.length;
    // The newest stays, however large.
    while (this.#chars > LIMIT.chars && this.#first < this.#next - 1) this.#drop();
  }

  #drop(): void {
    const place = this.#first % LIMIT.records;
    this.#chars -= this.#slots[place]?.json.length ?? 0;
    this.#slots[place] = undefined;
    this.#first++;
  }
}
