/**
 * The tokens that a draw may choose, and their weights. Truncations keep the first tokens of one
 * strict order: likelier tokens first, then lower ids. Partial selection finds these tokens,
 * because sorting a vocabulary of 150 000 tokens would cost more than all other steps.
 */
import type { SamplingSpec } from "#shared/contract/generation.js";

/** The tokens that a draw may choose: the first `count` places of two arrays. */
export interface Candidates {
  /** Token ids, ascending. */
  readonly ids: Int32Array;
  /** One per id, above zero and not normalised: the likeliest token has 1. */
  readonly weights: Float64Array;
  readonly count: number;
}

type Truncation = Pick<SamplingSpec, "temperature" | "topK" | "topP" | "minP">;

/** Token ids. All calls share these three arrays, which grow to the largest vocabulary. */
let ids = new Int32Array(0);
/** One per place of `ids`: logits at first, weights later. */
let keys = new Float64Array(0);
/** Places of the two arrays above, in the order that a selection gives. */
let order = new Int32Array(0);

/**
 * Truncates as vLLM does: temperature, then min-p, then top-k, then top-p of the rest. Min-p and
 * top-k both keep the first few of the same order, so their order makes no difference. Here the
 * cheaper step comes first.
 * @param logits one per token of the vocabulary
 * @param largest the largest of `logits`, above -Infinity
 * @returns at least one candidate; valid until the next call
 */
export function candidates(logits: Float32Array, largest: number, spec: Truncation): Candidates {
  reserve(logits.length);
  const { temperature, topK, topP, minP } = spec;
  // A little below the logit that min-p corresponds to; `weigh` then applies min-p to the weights.
  const unlikely = minP > 0 ? largest + temperature * (Math.log(minP) - 1e-6) : -Infinity;
  let count = collect(logits, Math.max(unlikely, topK > 0 ? amongMost(logits, topK) : -Infinity));
  if (topK > 0 && topK < count) count = keepUpTo(placeOfRank(count, topK), count);
  count = weigh(count, largest, temperature, minP);
  if (topP < 1) count = keepNucleus(count, topP);
  return { ids, weights: keys, count };
}

/** Makes the arrays at least this long. */
function reserve(length: number): void {
  if (ids.length >= length) return;
  ids = new Int32Array(length);
  keys = new Float64Array(length);
  order = new Int32Array(length);
}

/**
 * Cuts the logits into at least four times as many blocks as `most`, and takes the largest of each.
 * Few more than `most` logits reach the result, so the later steps skip most of a vocabulary.
 * @returns the `most`-th largest of these, which at least `most` logits reach; -Infinity for a
 *   vocabulary that is too small
 */
function amongMost(logits: Float32Array, most: number): number {
  const length = Math.floor(logits.length / (4 * most));
  if (length < 4) return -Infinity;
  let blocks = 0;
  for (let start = 0; start + length <= logits.length; start += length) {
    let largest = -Infinity;
    for (let id = start; id < start + length; id++) {
      const logit = logits[id] as number;
      if (logit > largest) largest = logit;
    }
    keys[blocks++] = largest;
  }
  return keys[placeOfRank(blocks, most)] as number;
}

/**
 * Fills `ids` and `keys` with the logits that reach `floor`. Leaves out impossible tokens
 * (-Infinity), and NaN, which compares as false.
 * @returns the number of tokens
 */
function collect(logits: Float32Array, floor: number): number {
  let count = 0;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id] as number;
    if (logit >= floor && logit > -Infinity) {
      ids[count] = id;
      keys[count] = logit;
      count++;
    }
  }
  return count;
}

/** @returns the place whose key is the `rank`-th largest, counted from 1 */
function placeOfRank(count: number, rank: number): number {
  for (let i = 0; i < count; i++) order[i] = i;
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = partition(low, high);
    if (rank <= middle + 1) high = middle;
    else low = middle + 1;
  }
  return order[low] as number;
}

/**
 * Turns logits into weights. Drops weights below min-p, and weights that a double cannot tell from
 * zero.
 * @returns the number of tokens left
 */
function weigh(count: number, largest: number, temperature: number, minP: number): number {
  let kept = 0;
  for (let i = 0; i < count; i++) {
    const logit = keys[i] as number;
    // The first case also serves two infinities, whose difference would be NaN.
    const weight = logit === largest ? 1 : Math.exp((logit - largest) / temperature);
    if (weight > 0 && weight >= minP) {
      ids[kept] = ids[i] as number;
      keys[kept] = weight;
      kept++;
    }
  }
  return kept;
}

/**
 * Keeps the likeliest tokens until their part of all weight reaches `share`. The token that reaches
 * `share` stays too.
 * @returns the number of tokens left
 */
function keepNucleus(count: number, share: number): number {
  let total = 0;
  for (let i = 0; i < count; i++) total += keys[i] as number;
  // All tokens below this weight together weigh less than the part to cut, so the nucleus has none
  // of these tokens. Thus most of a vocabulary needs no comparison.
  const negligible = ((1 - share) * total) / count;
  let left = 0;
  for (let i = 0; i < count; i++) if ((keys[i] as number) >= negligible) order[left++] = i;
  const wanted = share * total;
  let before = 0;
  let low = 0;
  let high = left - 1;
  while (low < high) {
    const middle = partition(low, high);
    let upTo = before;
    for (let at = low; at <= middle; at++) upTo += keys[order[at] as number] as number;
    if (upTo >= wanted) {
      high = middle;
    } else {
      low = middle + 1;
      before = upTo;
    }
  }
  return keepUpTo(order[low] as number, count);
}

/**
 * Drops the tokens that are less likely than the token at place `last`. The rest stays in the order
 * of ids.
 * @returns the number of tokens left
 */
function keepUpTo(last: number, count: number): number {
  const lowest = keys[last] as number;
  let kept = 0;
  for (let i = 0; i < count; i++) {
    const key = keys[i] as number;
    if (key > lowest || (key === lowest && i <= last)) {
      ids[kept] = ids[i] as number;
      keys[kept] = key;
      kept++;
    }
  }
  return kept;
}

/**
 * Hoare's partition.
 * @returns m in [low, high): in `order`, no place of [low, m] comes after a place of (m, high]
 */
function partition(low: number, high: number): number {
  const pivot = order[(low + high) >>> 1] as number;
  let i = low - 1;
  let j = high + 1;
  for (;;) {
    do i++;
    while (comesBefore(order[i] as number, pivot));
    do j--;
    while (comesBefore(pivot, order[j] as number));
    if (i >= j) return j;
    const swapped = order[i] as number;
    order[i] = order[j] as number;
    order[j] = swapped;
  }
}

/** Whether place `a` is likelier than place `b`; the lower id decides between equals. */
function comesBefore(a: number, b: number): boolean {
  const keyA = keys[a] as number;
  const keyB = keys[b] as number;
  return keyA > keyB || (keyA === keyB && a < b);
}
