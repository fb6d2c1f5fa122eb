/**
 * Rows that decode together: the rows share a block of caches and a forward pass per iteration.
 * Rows of different lengths share a batch as long as little of the block is padding.
 */
import type { Choice } from "./choice.js";
import type { Decoder } from "./decoder.js";
import { blockBytes, gather, KvMemory, rightSlice, type KvBlock, type KvLayout, type KvSlice } from "./kv.js";

/** One choice that decodes. */
export interface Row<Owner> {
  readonly owner: Owner;
  readonly choice: Choice;
  /**
   * Positions of the row's cache. The last drawn token has no position yet, because the next pass
   * takes that token in.
   */
  length: number;
  /**
   * The choice has ended, or the engine has removed its request. Passes still compute the row until
   * the next rebuild of the block.
   */
  gone: boolean;
}

/**
 * Share of rows that may be gone before the batch rebuilds its block. A rebuild copies the whole
 * block, so a few gone rows stay in.
 */
const GONE_SHARE = 0.25;
/**
 * Largest size of two batches together that merge at once. Larger batches merge when the younger
 * batch is `MERGE_AGE` iterations old. A separate batch costs a pass per iteration, and a merge
 * costs one copy.
 */
const SMALL_BYTES = 64 * 1024 * 1024;
const MERGE_AGE = 4;
/** Positions per row that new memory has beyond the present need. */
const GROWTH = 64;
/** A row may have padding up to twice its own length and this many positions more. */
const PADDING_SLACK = 64;

export class DecodeBatch<Owner> {
  readonly #layout: KvLayout;
  rows: Row<Owner>[];
  block: KvBlock;
  /** Iterations of this batch so far. */
  age = 0;
  /**
   * Passes read from one set of memory and write into the other, in turn. New arrays for every pass
   * would keep the garbage collector busy.
   */
  #sets: readonly [KvMemory | undefined, KvMemory | undefined] = [undefined, undefined];

  constructor(layout: KvLayout, rows: readonly Row<Owner>[], slices: readonly KvSlice[]) {
    this.#layout = layout;
    this.rows = [...rows];
    this.block = gather(layout, slices);
  }

  get bytes(): number {
    return blockBytes(this.#layout, this.block);
  }

  /** Rows that are not gone. */
  get live(): Row<Owner>[] {
    return this.rows.filter(({ gone }) => !gone);
  }

  /**
   * Feeds the last token of every row to the model.
   * @returns for every live row, the logits after that token
   * @throws the runtime's error; the batch is then unchanged
   */
  async decode({ forward }: Decoder): Promise<{ row: Row<Owner>; logits: Float32Array }[]> {
    const ids = BigInt64Array.from(this.rows, ({ choice }) => BigInt(choice.tokens.at(-1) ?? 0));
    // A gone row may be at the model's last position, so the pass gives such a row length 0.
    const lengths = this.rows.map(({ gone, length }) => (gone ? 0 : length));
    const [last, next] = this.#sets;
    const capacity = this.block.capacity + 1;
    const memory = next?.fits(this.rows.length, capacity) === true ? next : this.#memory(capacity);
    const present = memory.arrays(this.rows.length, capacity);
    const { logits, present: longer } = await forward({ ids, steps: 1, lengths, past: this.block, present });
    // The sets change places only now, so that a failed pass leaves the past intact.
    this.#sets = [memory, last];
    this.block = longer;
    this.age++;
    return this.rows.flatMap((row, i) => {
      const own = logits[i];
      if (row.gone || own === undefined) return [];
      row.length++;
      return [{ row, logits: own }];
    });
  }

  #memory(capacity: number): KvMemory {
    return new KvMemory(this.#layout, this.rows.length, capacity + GROWTH);
  }

  /** The place of a row's cache in the present block. */
  slice(row: Row<Owner>): KvSlice {
    return rightSlice(this.block, this.rows.indexOf(row), row.length);
  }

  /**
   * Takes gone rows out of the block once there are many.
   *
   * @param atOnce takes gone rows out in any case
   */
  compact(atOnce = false): void {
    const { live } = this;
    const gone = this.rows.length - live.length;
    if (gone === 0 || live.length === 0 || (!atOnce && gone < this.rows.length * GONE_SHARE)) return;
    this.block = gather(
      this.#layout,
      live.map((row) => this.slice(row)),
    );
    this.rows = live;
  }

  /** @returns a new batch with the live rows of one owner */
  part(owner: Owner): DecodeBatch<Owner> {
    const rows = this.live.filter((row) => row.owner === owner);
    return new DecodeBatch(
      this.#layout,
      rows,
      rows.map((row) => this.slice(row)),
    );
  }
}

/**
 * Batches that are about to become one batch. The merge chooses all members first and copies once.
 */
interface Group<Owner> {
  readonly batches: DecodeBatch<Owner>[];
  /** Lengths of the shortest and of the longest row. */
  low: number;
  high: number;
  bytes: number;
  age: number;
}

/**
 * @param padding whether rows of different lengths may share a block
 * @returns the live rows in as few batches as padding and the cost of copies allow
 */
export function mergeBatches<Owner>(
  layout: KvLayout,
  batches: readonly DecodeBatch<Owner>[],
  padding: boolean,
): DecodeBatch<Owner>[] {
  const groups = batches
    .filter(({ live }) => live.length > 0)
    .map((batch) => groupOf(batch))
    .sort((a, b) => a.low - b.low);
  const merged: Group<Owner>[] = [];
  for (const group of groups) {
    const into = merged.at(-1);
    if (into === undefined || !mayMerge(into, group, padding)) merged.push(group);
    else join(into, group);
  }
  return merged.map((group) => merge(layout, group));
}

function groupOf<Owner>(batch: DecodeBatch<Owner>): Group<Owner> {
  const lengths = batch.live.map(({ length }) => length);
  const { bytes, age } = batch;
  return { batches: [batch], low: Math.min(...lengths), high: Math.max(...lengths), bytes, age };
}

function mayMerge<Owner>(a: Group<Owner>, b: Group<Owner>, padding: boolean): boolean {
  const low = Math.min(a.low, b.low);
  const high = Math.max(a.high, b.high);
  if (high > (padding ? 2 * low + PADDING_SLACK : low)) return false;
  return a.bytes + b.bytes <= SMALL_BYTES || Math.min(a.age, b.age) >= MERGE_AGE;
}

function join<Owner>(into: Group<Owner>, group: Group<Owner>): void {
  into.batches.push(...group.batches);
  into.low = Math.min(into.low, group.low);
  into.high = Math.max(into.high, group.high);
  into.bytes += group.bytes;
  into.age = Math.max(into.age, group.age);
}

function merge<Owner>(layout: KvLayout, { batches, age }: Group<Owner>): DecodeBatch<Owner> {
  const [first, ...others] = batches;
  if (first !== undefined && others.length === 0) return first;
  const rows = batches.flatMap(({ live }) => live);
  const slices = batches.flatMap((batch) => batch.live.map((row) => batch.slice(row)));
  const made = new DecodeBatch(layout, rows, slices);
  made.age = age;
  return made;
}
