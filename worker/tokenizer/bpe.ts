/**
 * Byte-pair encoding, as in Hugging Face's Rust tokenizer: merges the pair of the lowest rank
 * first, and the leftmost of equal pairs. It uses typed arrays and a heap, because
 * `@huggingface/tokenizers` takes 36 s for a megabyte of one letter.
 */
import type { TokenizerJson } from "./schema.js";
import { entriesOf } from "./tokenizer-json.js";

type Model = TokenizerJson["model"];
type Affix = "continuing_subword_prefix" | "end_of_word_suffix";
type Options = Pick<Model, "fuse_unk" | "byte_fallback" | "ignore_merges" | Affix>;

/** Longest word to cache, in characters, because short words come again and again. */
const CACHED_LENGTH = 64;
/** Most words in the cache. At this size, the encoder empties the cache. */
const CACHED_WORDS = 10_000;
/**
 * More positions than a word can have (2^26, 64 Mi). `rank * POSITIONS + position` is a number
 * below 2^53 that sorts by rank first.
 */
const POSITIONS = 2 ** 26;

export class BytePairs {
  /** Token to id. Control tokens are missing, so that no text becomes a control token. */
  private readonly ids: Map<string, number>;
  /** A pair of ids, as one number, to its rank. */
  private readonly ranks = new Map<number, number>();
  /** A rank to the id of the merged pair. */
  private readonly merged: number[] = [];
  /** Above every id: `left * pairBase + right` is a pair as a number. */
  private readonly pairBase: number;
  /** The id of the unknown token. */
  private readonly unknown: number | undefined;
  private readonly options: Options;
  private readonly cache = new Map<string, readonly number[]>();
  private readonly heap = new Heap();

  /**
   * @param control ids that no text may become
   * @throws Error if the model does not have the expected shape
   */
  constructor(model: Model, control: ReadonlySet<number>) {
    const { vocab, merges, ...options } = model;
    if (merges == null) throw new Error("tokenizer.json: model.merges is missing");
    this.options = options;
    const all = new Map(entriesOf(vocab));
    this.unknown = all.get(options.unk_token ?? "");
    this.ids = new Map([...all].filter(([, id]) => !control.has(id)));
    this.pairBase = [...all.values()].reduce((most, id) => Math.max(most, id), 0) + 1;
    const skipped = options.continuing_subword_prefix?.length ?? 0;
    for (const merge of merges) {
      const [left, right] = typeof merge === "string" ? splitMerge(merge) : Array.isArray(merge) ? merge : [];
      if (typeof left !== "string" || typeof right !== "string") throw new Error("tokenizer.json: a merge is no pair");
      const pair = this.pairOf(all.get(left), all.get(right));
      const id = all.get(left + right.slice(skipped));
      const rank = this.merged.length;
      // A pair without a result takes a rank too, so that other pairs keep their ranks.
      this.merged.push(id ?? 0);
      if (pair === undefined || id === undefined || control.has(id) || this.ranks.has(pair)) continue;
      this.ranks.set(pair, rank);
    }
  }

  /** @returns the ids of one word */
  encode(word: string): readonly number[] {
    const whole = this.options.ignore_merges === true ? this.ids.get(word) : undefined;
    if (whole !== undefined) return [whole];
    const cached = this.cache.get(word);
    if (cached !== undefined) return cached;
    const encoded = this.merge(this.symbolsOf(word));
    if (word.length <= CACHED_LENGTH) {
      if (this.cache.size >= CACHED_WORDS) this.cache.clear();
      this.cache.set(word, encoded);
    }
    return encoded;
  }

  /** @returns an id for each character, or its bytes, or the unknown token */
  private symbolsOf(word: string): number[] {
    const { continuing_subword_prefix: prefix, end_of_word_suffix: suffix, byte_fallback, fuse_unk } = this.options;
    const symbols: number[] = [];
    let unknownBefore = false;
    for (let at = 0; at < word.length;) {
      const character = String.fromCodePoint(word.codePointAt(at) ?? 0);
      const end = at + character.length;
      let text = at > 0 && prefix ? prefix + character : character;
      if (end === word.length && suffix) text += suffix;
      at = end;
      const id = this.ids.get(text);
      const bytes = id === undefined && byte_fallback === true ? this.bytesOf(text) : undefined;
      const isUnknown = id === undefined && bytes === undefined;
      if (id !== undefined) symbols.push(id);
      else if (bytes !== undefined) symbols.push(...bytes);
      else if (this.unknown !== undefined && !(unknownBefore && fuse_unk === true)) symbols.push(this.unknown);
      unknownBefore = isUnknown;
    }
    return symbols;
  }

  private bytesOf(text: string): number[] | undefined {
    const found: number[] = [];
    for (const byte of Buffer.from(text)) {
      const id = this.ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
      if (id === undefined) return undefined;
      found.push(id);
    }
    return found;
  }

  private merge(symbols: readonly number[]): readonly number[] {
    const { length } = symbols;
    if (length < 2 || length >= POSITIONS) return symbols;
    const ids = Int32Array.from(symbols);
    const next = Int32Array.from(ids, (_, i) => (i + 1 < length ? i + 1 : -1));
    const previous = Int32Array.from(ids, (_, i) => i - 1);
    const { heap } = this;
    heap.clear();
    // A rank from the heap may be stale: its pair may have changed or merged since.
    const rankAt = (at: number): number | undefined => {
      const right = next[at] ?? -1;
      return right < 0 ? undefined : this.ranks.get((ids[at] ?? 0) * this.pairBase + (ids[right] ?? 0));
    };
    const offer = (at: number): void => {
      const rank = rankAt(at);
      if (rank !== undefined) heap.push(rank * POSITIONS + at);
    };
    for (let at = 0; at + 1 < length; at++) offer(at);
    for (let top = heap.pop(); top !== undefined; top = heap.pop()) {
      const at = top % POSITIONS;
      const rank = (top - at) / POSITIONS;
      if ((ids[at] ?? ABSORBED) === ABSORBED || rankAt(at) !== rank) continue;
      const right = next[at] ?? -1;
      const after = next[right] ?? -1;
      ids[at] = this.merged[rank] ?? 0;
      ids[right] = ABSORBED;
      next[right] = -1;
      next[at] = after;
      if (after >= 0) previous[after] = at;
      const before = previous[at] ?? -1;
      if (before >= 0) offer(before);
      offer(at);
    }
    return Array.from(ids.filter((id) => id !== ABSORBED));
  }

  private pairOf(left: number | undefined, right: number | undefined): number | undefined {
    return left === undefined || right === undefined ? undefined : left * this.pairBase + right;
  }
}

/** Stands for a symbol that was merged into the symbol before. */
const ABSORBED = -1;

/** In this form of a merge, the first space parts the two tokens, which contain no space. */
function splitMerge(merge: string): [string, string] | [] {
  const space = merge.indexOf(" ");
  return space < 0 ? [] : [merge.slice(0, space), merge.slice(space + 1)];
}

/** A heap that gives the least number first. It grows, and serves word after word. */
class Heap {
  private items = new Float64Array(64);
  private size = 0;

  clear(): void {
    this.size = 0;
  }

  push(item: number): void {
    if (this.size === this.items.length) {
      const larger = new Float64Array(this.size * 2);
      larger.set(this.items);
      this.items = larger;
    }
    const { items } = this;
    let at = this.size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = items[parent] ?? 0;
      if (above <= item) break;
      items[at] = above;
      at = parent;
    }
    items[at] = item;
  }

  pop(): number | undefined {
    if (this.size === 0) return undefined;
    const { items } = this;
    const top = items[0];
    const last = items[--this.size] ?? 0;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.size) break;
      if (child + 1 < this.size && (items[child + 1] ?? 0) < (items[child] ?? 0)) child++;
      const below = items[child] ?? 0;
      if (below >= last) break;
      items[at] = below;
      at = child;
    }
    items[at] = last;
    return top;
  }
}
