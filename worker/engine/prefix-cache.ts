/**
 * Remembers the caches of computed token sequences, so that a request with the same beginning
 * computes only the rest. The next turn of a conversation and a shared system prompt profit. This
 * is bookkeeping alone; the caller bounds the memory with `shrink`.
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

  /** Bytes of all remembered blocks. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Remembers the caches of `tokens`. Does not keep a sequence that is the beginning of a longer
   * one.
   * @param bytes of the slice's block; soon the cache is the block's only holder
   * @throws RangeError if the number of positions and of tokens differ
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
   * @returns the caches of the longest known beginning of `tokens`; undefined if there is none. At
   *   least the last token remains, because only a pass over that token gives the logits after it.
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

  /** Forgets the least recently used sequences until at most `bytes` remain. */
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
