/**
 * The two bounded buffers of a live stream: the records that readers saw last, and messages that
 * came too early.
 */
import type { StreamRecord } from "./open-stream.js";

/**
 * The most that a ring holds. A character takes one byte of memory, or two in a text with a
 * character beyond Latin-1.
 */
const RING = { records: 128, chars: 65_536 };

/**
 * The last records of a stream, for readers that keep up. A reader that falls behind reads the log.
 */
export class Ring {
  /** The record of index i is in slot i modulo `RING.records`. */
  readonly #slots: (StreamRecord | undefined)[] = [];
  /** Index of the oldest record held; the same as `#next` while there is none. */
  #first: number;
  #next: number;
  #chars = 0;

  constructor(next: number) {
    this.#first = next;
    this.#next = next;
  }

  /** The index that the next record will have. */
  get next(): number {
    return this.#next;
  }

  /** @returns undefined if the ring holds the record no more, or not yet */
  at(index: number): StreamRecord | undefined {
    return index >= this.#first && index < this.#next ? this.#slots[index % RING.records] : undefined;
  }

  /** All records from `index` on; none if the ring does not hold the record at `index`. */
  from(index: number): StreamRecord[] {
    const records: StreamRecord[] = [];
    for (let i = index; i < this.#next; i++) {
      const record = this.at(i);
      if (record === undefined) return [];
      records.push(record);
    }
    return records;
  }

  /** How many characters the records from `index` on have. */
  charsFrom(index: number): number {
    let chars = 0;
    for (let i = Math.max(index, this.#first); i < this.#next; i++) chars += this.at(i)?.json.length ?? 0;
    return chars;
  }

  /** Whether a record with this many characters would push out no record from `index` on. */
  hasRoom(chars: number, index: number): boolean {
    const held = this.#next - index;
    if (held === 0) return true;
    if (held >= RING.records) return false;
    return this.#chars + chars <= RING.chars || this.charsFrom(index) + chars <= RING.chars;
  }

  /** @param record the record of index `next` */
  push(record: StreamRecord): void {
    if (this.#next - this.#first === RING.records) this.#drop();
    this.#slots[this.#next % RING.records] = record;
    this.#next++;
    this.#chars += record.json.length;
    // The newest record stays, even if it is larger than the limit.
    while (this.#chars > RING.chars && this.#first < this.#next - 1) this.#drop();
  }

  #drop(): void {
    const slot = this.#first % RING.records;
    this.#chars -= this.#slots[slot]?.json.length ?? 0;
    this.#slots[slot] = undefined;
    this.#first++;
  }
}

const REORDER = { records: 256, chars: 262_144 };

/**
 * Records that came as messages before readers could see them, because the gateway was reading the
 * log, or cannot read it. Records beyond the limits are dropped, because the log has them.
 */
export class ReorderBuffer {
  readonly #records = new Map<number, StreamRecord>();
  #chars = 0;

  /** @param next index of the record that readers see next */
  keep(record: StreamRecord, next: number): void {
    const { index, json } = record;
    if (index >= next + REORDER.records || this.#records.has(index)) return;
    if (this.#chars + json.length > REORDER.chars) return;
    this.#records.set(index, record);
    this.#chars += json.length;
  }

  at(index: number): StreamRecord | undefined {
    return this.#records.get(index);
  }

  /** Drops the records below this index. */
  forget(below: number): void {
    for (const [index, { json }] of this.#records) {
      if (index >= below) continue;
      this.#records.delete(index);
      this.#chars -= json.length;
    }
  }
}
