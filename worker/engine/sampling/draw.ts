/**
 * Draws one candidate according to the weights. A worker that continues another worker's request
 * computes logits that differ in the last bits, and must still draw the same tokens.
 *
 * The usual way compares one random number with running sums over ids or over ranks, and is
 * sensitive to such noise. Noise early in the sum shifts the limits of all later tokens. Ranks swap
 * places, and tokens no likelier than the noise get new limits.
 *
 * So `draw` halves the ids bit by bit from the top. Each time a separate random number decides
 * between left and right, by the weights of the two sides. Noise hardly moves the share of a side,
 * and a change in one subtree moves nothing in another. Each bit has its own number whether or not
 * the draw needs the bit. Thus a candidate that comes or goes at the edge of a truncation disturbs
 * only the draws of its own subtrees.
 */
import type { Candidates } from "./candidates.js";
import { uniform } from "./random.js";

/**
 * @param seed of the request
 * @param choice index of the choice in the request, from 0
 * @param index number of tokens that the choice has so far
 * @returns a token id
 */
export function draw({ ids, weights, count }: Candidates, seed: number, choice: number, index: number): number {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const last = ids[high] as number;
    const bit = 31 - Math.clz32((ids[low] as number) ^ last);
    const middle = firstFrom((last >>> bit) << bit, ids, low, high);
    const left = sum(weights, low, middle);
    const right = sum(weights, middle, high + 1);
    if (uniform(seed, choice, index, bit) * (left + right) < left) high = middle - 1;
    else low = middle;
  }
  return ids[low] as number;
}

/** @returns the first place in [low, high] whose id is not below `id` */
function firstFrom(id: number, ids: Int32Array, low: number, high: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ids[middle] as number) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** @returns the weight of the places in [from, to) */
function sum(weights: Float64Array, from: number, to: number): number {
  let total = 0;
  for (let i = from; i < to; i++) total += weights[i] as number;
  return total;
}
