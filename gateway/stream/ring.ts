/** The last records of a stream, for readers that keep up. Bounded by count and bytes; who falls behind reads the log. */
import type { StreamRecord } from "../inference.js";

const LIMIT = { records: 128, bytes: 65_536 };

export class Ring {
  /** By index modulo the length. */
  readonly #slots: (StreamRecord | undefined)[] = [];
  /** Index of the oldest record held; `next` while there is none. */
  #first: number;
  #next: number;
  #bytes = 0;

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

  /** Copies the bytes: a view would keep alive all that arrived with them. */
  push({ bytes, final }: StreamRecord): void {
    if (this.#next - this.#first === LIMIT.records) this.#drop();
    this.#slots[this.#next % LIMIT.records] = { index: this.#next, bytes: Buffer.from(bytes), final };
    this.#next++;
    this.#bytes += bytes.length;
    // The newest stays, however large.
    while (this.#bytes > LIMIT.bytes && this.#first < this.#next - 1) this.#drop();
  }

  #drop(): void {
    const place = this.#first % LIMIT.records;
    this.#bytes -= this.#slots[place]?.bytes.length ?? 0;
    this.#slots[place] = undefined;
    this.#first++;
  }
}
