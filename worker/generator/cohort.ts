/** Rows that decode together: one block of caches, one forward pass per iteration. Rows of different lengths share one as long as little of it is padding. */
import type { Choice } from "./choice.js";
import type { Decoder } from "./decoder.js";
import { blockBytes, gather, KvMemory, rightSlice, type KvBlock, type KvLayout, type KvSlice } from "./kv.js";

export interface Row<Owner> {
  readonly owner: Owner;
  readonly choice: Choice;
  /** Positions of its cache: every token but the last one sampled, which the next pass takes in. */
  length: number;
  /** It has ended or was taken out; it computes on unheard until the block is next rebuilt. */
  gone: boolean;
}

/** Rebuilding a block copies all of it: dead rows are carried along until they are this share. */
const GONE_SHARE = 0.25;
/** A cohort of its own costs a pass per iteration, merging costs a copy: where that is small it is made at once, else when the younger is so many iterations old. */
const SMALL_BYTES = 64 * 1024 * 1024;
const MERGE_AGE = 4;
/** Positions that memory is made for beyond what is needed now. */
const GROWTH = 64;
/** A row may be padded to twice its own length, and this much more. */
const PADDING_SLACK = 64;

export class Cohort<Owner> {
  readonly #layout: KvLayout;
  rows: Row<Owner>[];
  block: KvBlock;
  age = 0;
  /** Two sets of memory that passes write in turn, while they read the other: fresh arrays for every pass would keep the garbage collector busy. */
  #sets: readonly [KvMemory | undefined, KvMemory | undefined] = [undefined, undefined];

  constructor(layout: KvLayout, rows: readonly Row<Owner>[], slices: readonly KvSlice[]) {
    this.#layout = layout;
    this.rows = [...rows];
    this.block = gather(layout, slices);
  }

  get bytes(): number {
    return blockBytes(this.#layout, this.block);
  }

  get live(): Row<Owner>[] {
    return this.rows.filter(({ gone }) => !gone);
  }

  /** One token for every row. @returns the logits of the live ones. @throws what the runtime throws; nothing has changed then. */
  async decode({ forward }: Decoder): Promise<{ row: Row<Owner>; logits: Float32Array }[]> {
    const ids = BigInt64Array.from(this.rows, ({ choice }) => BigInt(choice.tokens.at(-1) ?? 0));
    // A dead row may stand at the end of what the model has positions for.
    const lengths = this.rows.map(({ gone, length }) => (gone ? 0 : length));
    const [last, next] = this.#sets;
    const capacity = this.block.capacity + 1;
    const memory = next?.fits(this.rows.length, capacity) === true ? next : this.#memory(capacity);
    const present = memory.arrays(this.rows.length, capacity);
    const { logits, present: longer } = await forward({ ids, steps: 1, lengths, past: this.block, present });
    // Only now: after a pass that failed, the past is still where it was.
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

  /** Where a row's cache lies now. */
  slice(row: Row<Owner>): KvSlice {
    return rightSlice(this.block, this.rows.indexOf(row), row.length);
  }

  /** Drops the dead rows when they are many, or at once. */
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

  /** Only its owner's rows, in a cohort of their own. */
  part(owner: Owner): Cohort<Owner> {
    const rows = this.live.filter((row) => row.owner === owner);
    return new Cohort(
      this.#layout,
      rows,
      rows.map((row) => this.slice(row)),
    );
  }
}

/** Cohorts that become one: chosen first, copied once. */
interface Group<Owner> {
  readonly cohorts: Cohort<Owner>[];
  low: number;
  high: number;
  bytes: number;
  age: number;
}

/** @param padding whether rows of different lengths may share a block. @returns as few cohorts as that and the cost of copying allow. */
export function regroup<Owner>(layout: KvLayout, cohorts: readonly Cohort<Owner>[], padding: boolean): Cohort<Owner>[] {
  const groups = cohorts
    .filter(({ live }) => live.length > 0)
    .map((cohort) => groupOf(cohort))
    .sort((a, b) => a.low - b.low);
  const merged: Group<Owner>[] = [];
  for (const group of groups) {
    const into = merged.at(-1);
    if (into === undefined || !mayMerge(into, group, padding)) merged.push(group);
    else join(into, group);
  }
  return merged.map((group) => merge(layout, group));
}

function groupOf<Owner>(cohort: Cohort<Owner>): Group<Owner> {
  const lengths = cohort.live.map(({ length }) => length);
  const { bytes, age } = cohort;
  return { cohorts: [cohort], low: Math.min(...lengths), high: Math.max(...lengths), bytes, age };
}

function mayMerge<Owner>(a: Group<Owner>, b: Group<Owner>, padding: boolean): boolean {
  const low = Math.min(a.low, b.low);
  const high = Math.max(a.high, b.high);
  if (high > (padding ? 2 * low + PADDING_SLACK : low)) return false;
  return a.bytes + b.bytes <= SMALL_BYTES || Math.min(a.age, b.age) >= MERGE_AGE;
}

function join<Owner>(into: Group<Owner>, group: Group<Owner>): void {
  into.cohorts.push(...group.cohorts);
  into.low = Math.min(into.low, group.low);
  into.high = Math.max(into.high, group.high);
  into.bytes += group.bytes;
  into.age = Math.max(into.age, group.age);
}

function merge<Owner>(layout: KvLayout, { cohorts, age }: Group<Owner>): Cohort<Owner> {
  const [first, ...others] = cohorts;
  if (first !== undefined && others.length === 0) return first;
  const rows = cohorts.flatMap(({ live }) => live);
  const slices = cohorts.flatMap((cohort) => cohort.live.map((row) => cohort.slice(row)));
  const made = new Cohort(layout, rows, slices);
  made.age = age;
  return made;
}
