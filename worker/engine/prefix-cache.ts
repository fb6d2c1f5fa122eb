/**
 * Remembers the caches of token sequences that were computed before: a request that begins like one
 * of them computes only the rest. The next turn of a conversation and a shared system prompt are
 * found here. This is bookkeeping alone; the caller bounds what is kept, with `shrink`.
 */
import type { KvSlice } from "./kv.js";

interface Entry {
  readonly tokens: Int32Array;
  /** As many positions as there are tokens. */
  readonly slice: KvSlice;
  readonly bytes: number;
}

export class PrefixCache {
  /** Least recently used first. */
  readonly #entries = new Set<Entry>();
  #bytes = 0;

  /** Bytes of all that is remembered. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Remembers the caches of `tokens`. A sequence that is the beginning of a longer one is not kept.
   * @param bytes of the block in which the slice lies; soon nobody else holds that block
   * @throws RangeError if there is not one position for each token
   */
  add(tokens: Int32Array, slice: KvSlice, bytes: number): void {
    if (slice.length !== tokens.length) throw new RangeError(`${slice.length} positions for ${tokens.length} tokens`);
    for (const entry of this.#entries) {
      const common = commonPrefix(entry.tokens, tokens);
      if (common === tokens.length) return this.#touch(entry);
      if (common === entry.tokens.length) this.#remove(entry);
    }
    this.#entries.add({ tokens, slice, bytes });
    this.#bytes += bytes;
  }

  /**
   * @returns the caches of the longest known beginning of `tokens`, if any. Never those of all
   * tokens: the last one must be computed to know what follows it
   */
  find(tokens: Int32Array): KvSlice | undefined {
    let best: Entry | undefined;
    let length = 0;
    for (const entry of this.#entries) {
      const common = Math.min(commonPrefix(entry.tokens, tokens), tokens.length - 1);
      if (common > length) {
        best = entry;
        length = common;
      }
    }
    if (best === undefined) return undefined;
    this.#touch(best);
    return { ...best.slice, length };
  }

  /** Forgets the least recently used sequences until at most `bytes` are kept. */
  shrink(bytes: number): void {
    for (const entry of this.#entries) {
      if (this.#bytes <= bytes) return;
      this.#remove(entry);
    }
  }

  #touch(entry: Entry): void {
    this.#entries.delete(entry);
    this.#entries.add(entry);
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry);
    this.#bytes -= entry.bytes;
  }
}

function commonPrefix(a: Int32Array, b: Int32Array): number {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a[length] === b[length]) length++;
  return length;
}
