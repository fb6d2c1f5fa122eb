/**
 * Recognises repeated ids, among millions. The set keeps 127 bits of each id's digest, so long ids
 * take no more memory. Two different ids agree in these bits less often than memory fails.
 */
import { createHash } from "node:crypto";

const FIRST_SLOTS = 1024;
/** The set doubles its slots as soon as this share of them is filled. */
const MOST_FILLED = 0.6;

export class IdSet {
  #slots = new BigUint64Array(2 * FIRST_SLOTS);
  #size = 0;

  /** @returns whether the id is new */
  add(id: string): boolean {
    const digest = createHash("sha256").update(id).digest();
    // The bit tells a digest from an empty slot, which has only zeros.
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

/** @returns whether the digest is new */
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
