/** Messages that cannot be shown yet: they came while the log was being read, or while it cannot be. Bounded; what does not fit is in the log. */
import type { StreamRecord } from "../inference.js";

const LIMIT = { records: 256, chars: 262_144 };

export class Heard {
  readonly #records = new Map<number, StreamRecord>();
  #chars = 0;

  /** @param next index of the record that is shown next. */
  keep(record: StreamRecord, next: number): void {
    const { index, json } = record;
    if (index >= next + LIMIT.records || this.#records.has(index)) return;
    if (this.#chars + json.length > LIMIT.chars) return;
    this.#records.set(index, record);
    this.#chars += json.length;
  }

  at(index: number): StreamRecord | undefined {
    return this.#records.get(index);
  }

  /** Those below this index. */
  forget(below: number): void {
    for (const [index, { json }] of this.#records) {
      if (index >= below) continue;
      this.#records.delete(index);
      this.#chars -= json.length;
    }
  }
}
