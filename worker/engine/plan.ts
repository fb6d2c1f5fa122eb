/**
 * Decides what an iteration computes; the engine only carries it out. The rules:
 * - Every row that decodes gets its token.
 * - Beside them an iteration has a budget of tokens for prefills. Half of it goes to the oldest
 *   request, the rest to the requests with the fewest tokens left, so neither a long prompt nor a
 *   flow of short ones keeps a request waiting for ever. Interrupted streams go before the latter,
 *   in the order in which they came, and have a larger budget.
 * - When the caches outgrow their memory the youngest request gives way, so the oldest always
 *   finishes.
 */

/**
 * A prompt that waits for its forward passes, or a prompt with the output so far that is computed
 * again.
 */
export interface PrefillTask {
  /** Place in the order of arrival; smaller is older. */
  readonly order: number;
  /** Tokens that are still to be computed. */
  readonly left: number;
  /**
   * Bytes that the caches of its request take once they are whole; 0 for all but the first task of
   * a request.
   */
  readonly bytes: number;
  /** Its request has computed something already, and so has its room. */
  readonly begun: boolean;
  /** Its reader has had tokens already, and waits in the middle of the stream. */
  readonly interrupted: boolean;
}

/**
 * Interrupted streams may prefill up to this many times the normal token budget per iteration,
 * within `SLICE_MS`.
 */
const INTERRUPTED_BUDGET_FACTOR = 32;

/**
 * Rows that decode pause for interrupted streams no longer than this. When a worker dies another
 * one has all of its streams to compute again: better that its own streams wait once, for a moment,
 * than those of the dead worker for seconds.
 */
export const MAX_PAUSE_MS = 250;
/**
 * A prefill larger than the normal budget ends after this time, and goes on in the next iteration:
 * the records of one iteration are on their way to their readers while the next one is computed.
 */
export const SLICE_MS = 60;

/** How many tokens of a task this iteration computes. */
export interface Chunk<T> {
  readonly task: T;
  readonly tokens: number;
}

/**
 * @param budget prompt tokens of this iteration; interrupted streams may have more
 * @param room bytes that new caches may still take; a task that has begun has its room already
 * @param alone nothing else holds memory, so the oldest task begins even where it does not fit
 * @returns what to compute, in order
 */
export function planPrefill<T extends PrefillTask>(
  tasks: readonly T[],
  budget: number,
  room: number,
  alone: boolean,
): Chunk<T>[] {
  const runnable = admissible(tasks, room, alone);
  const [oldest] = runnable;
  if (oldest === undefined) return [];
  const given = new Map<T, number>();
  let spent = 0;
  const give = (task: T, upTo: number, share = upTo) => {
    const tokens = Math.min(share, upTo - spent, task.left - (given.get(task) ?? 0));
    if (tokens <= 0) return;
    given.set(task, (given.get(task) ?? 0) + tokens);
    spent += tokens;
  };
  const byLength = [...runnable].sort((a, b) => a.left - b.left || a.order - b.order);
  give(oldest, budget, Math.ceil(budget / 2));
  for (const task of runnable) if (task.interrupted) give(task, INTERRUPTED_BUDGET_FACTOR * budget);
  for (const task of byLength) if (task !== oldest) give(task, budget);
  give(oldest, budget);
  return [...given].map(([task, tokens]) => ({ task, tokens }));
}

/**
 * @returns the tasks that have room, oldest first. A task that finds none makes younger ones wait
 * too, or it might wait for ever
 */
function admissible<T extends PrefillTask>(tasks: readonly T[], room: number, alone: boolean): T[] {
  const chosen: T[] = [];
  let left = room;
  for (const task of [...tasks].sort((a, b) => a.order - b.order)) {
    if (!task.begun) {
      if (task.bytes > left && !(alone && chosen.length === 0)) break;
      left -= task.bytes;
    }
    chosen.push(task);
  }
  return chosen;
}

/** A request that holds memory. */
export interface Holder {
  /** Place in the order of arrival; smaller is older. */
  readonly order: number;
  /** Bytes that its caches take. */
  readonly bytes: number;
}

/**
 * @param decodedAgoMs how long ago the rows that decode had a token
 * @returns whether they wait for one more iteration, because `plan` has interrupted streams
 */
export function planPause(plan: readonly Chunk<PrefillTask>[], decodedAgoMs: number): boolean {
  return decodedAgoMs < MAX_PAUSE_MS && plan.some(({ task }) => task.interrupted);
}

/**
 * @returns the requests that give way to free `excess` bytes: youngest first, and never the oldest
 */
export function planPreemption<T extends Holder>(holders: readonly T[], excess: number): T[] {
  const youngestFirst = [...holders].sort((a, b) => b.order - a.order).slice(0, -1);
  const chosen: T[] = [];
  let left = excess;
  for (const holder of youngestFirst) {
    if (left <= 0) break;
    chosen.push(holder);
    left -= holder.bytes;
  }
  return chosen;
}
