/**
 * Which ids have come before, for millions of them: it keeps 128 bits of a digest of each, so it
 * takes no more memory for long ids, and two different ones are taken for the same less often than
 * memory fails.
 */
import { createHash } from "node:crypto";

const FIRST_SLOTS = 1024;
/** At most this share of the slots is filled before there are twice as many. */
const MOST_FILLED = 0.6;

export class IdSet {
  #slots = new BigUint64Array(2 * FIRST_SLOTS);
  #size = 0;

  /** @returns whether it was not there before */
  add(id: string): boolean {
    const digest = createHash("sha256").update(id).digest();
    // A slot of zeros is an empty one.
    const high = digest.readBigUInt64LE(0) | 1n;
    const low = digest.readBigUInt64LE(8);
    if (!put(this.#slots, high, low)) return false;
    this.#size++;
    if (this.#size > (MOST_FILLED * this.#slots.length) / 2) this.#grow();
    return true;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new BigUint64Array(2 * before.length);
    for (let at = 0; at < before.length; at += 2) {
      const high = before[at] ?? 0n;
      if (high !== 0n) put(this.#slots, high, before[at + 1] ?? 0n);
    }
  }
}

/** @returns whether it was not there before */
function put(slots: BigUint64Array, high: bigint, low: bigint): boolean {
  const count = slots.length / 2;
  for (let slot = Number(low % BigInt(count)); ; slot = (slot + 1) % count) {
    const there = slots[2 * slot];
    if (there === 0n) {
      slots[2 * slot] = high;
      slots[2 * slot + 1] = low;
      return true;
    }
    if (there === high && slots[2 * slot + 1] === low) return false;
  }
}
