/**
 * Finds the largest elements of an output in one pass, in memory for these elements alone. A pass
 * over millions of elements gives the event loop a turn now and then.
 */
import { setImmediate } from "node:timers/promises";

/** The elements of an output of numbers. */
export type Elements = ArrayLike<number> | ArrayLike<bigint>;

/** Elements to look at in one turn of the event loop. */
const IN_A_TURN = 131_072;

/** Counts the work of an answer, and gives the event loop a turn after each part of it. */
export class Turns {
  #left = IN_A_TURN;

  async spend(work: number): Promise<void> {
    this.#left -= work;
    if (this.#left > 0) return;
    this.#left = IN_A_TURN;
    await setImmediate();
  }
}

/**
 * @param from the first element, and `to` the first behind the last
 * @returns the places of the largest elements, the largest first, of equal ones the first; NaN is
 *   larger than nothing
 */
export async function topElements(
  elements: Elements,
  { from, to }: { readonly from: number; readonly to: number },
  most: number,
  turns: Turns,
): Promise<readonly number[]> {
  // A heap whose first place is that of the smallest element so far.
  const heap: number[] = [];
  for (let at = from; at < to;) {
    const end = Math.min(to, at + IN_A_TURN);
    await turns.spend(end - at);
    for (; at < end; at++) {
      if (heap.length < most) add(heap, at, elements);
      else if (isBefore(elements, at, heap[0] as number)) replaceFirst(heap, at, elements);
    }
  }
  return heap.sort((a, b) => (isBefore(elements, a, b) ? -1 : 1));
}

/** Whether the element at `a` comes before the element at `b`. */
function isBefore(elements: Elements, a: number, b: number): boolean {
  const [left, right] = [elements[a] as number | bigint, elements[b] as number | bigint];
  if (left > right) return true;
  if (left < right) return false;
  const isNone = Number.isNaN(left);
  return isNone === Number.isNaN(right) ? a < b : !isNone;
}

function add(heap: number[], place: number, elements: Elements): void {
  let at = heap.length;
  while (at > 0) {
    const above = (at - 1) >> 1;
    if (!isBefore(elements, heap[above] as number, place)) break;
    heap[at] = heap[above] as number;
    at = above;
  }
  heap[at] = place;
}

function replaceFirst(heap: number[], place: number, elements: Elements): void {
  let at = 0;
  for (;;) {
    const [left, right] = [2 * at + 1, 2 * at + 2];
    if (left >= heap.length) break;
    const isRight = right < heap.length && isBefore(elements, heap[left] as number, heap[right] as number);
    const below = isRight ? right : left;
    if (!isBefore(elements, place, heap[below] as number)) break;
    heap[at] = heap[below] as number;
    at = below;
  }
  heap[at] = place;
}
