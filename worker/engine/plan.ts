/**
 * Decides which work an iteration computes; the engine carries the plan out. The rules:
 * - Every row that decodes gets its token.
 * - Beside these rows, an iteration has a budget of tokens for prefills. The tenant that is next
 *   (shares.ts) gets as much of the budget as its requests need, and the tenants behind get the
 *   rest. Half of a tenant's part goes to its oldest request, the rest to its requests with the
 *   fewest tokens left. Thus neither a long prompt nor a flow of short prompts keeps a request
 *   waiting for ever.
 * - Interrupted streams go before the requests with the fewest tokens left, in order of arrival,
 *   and have a larger budget.
 * - When the caches outgrow their memory, the youngest request gives way, so the oldest always
 *   finishes.
 */

/**
 * A prompt that waits for its forward passes, or a prompt and its output so far that need computing
 * again.
 */
export interface PrefillTask {
  /** Place in the order of arrival; smaller is older. */
  readonly order: number;
  /** Tokens left to compute. */
  readonly left: number;
  /** Bytes of the request's complete caches; 0 for all but the first task of a request. */
  readonly bytes: number;
  /** Whether the request has begun to compute, and so has its room. */
  readonly begun: boolean;
  /** Whether the reader already has tokens, and waits in the middle of the stream. */
  readonly interrupted: boolean;
}

/**
 * Interrupted streams may prefill up to this many times the normal token budget per iteration,
 * within `SLICE_MS`.
 */
const INTERRUPTED_BUDGET_FACTOR = 32;

/**
 * Longest pause of the rows that decode, for interrupted streams. After the death of a worker,
 * another worker has to compute all of the dead worker's streams again. Its own streams wait for a
 * moment, so that the taken streams do not wait for seconds.
 */
export const MAX_PAUSE_MS = 250;
/**
 * A prefill above the normal budget ends after this time, and continues in the next iteration. Thus
 * records of one iteration reach their readers during the next.
 */
export const SLICE_MS = 60;

/** The number of tokens of a task that this iteration computes. */
export interface Chunk<T> {
  readonly task: T;
  readonly tokens: number;
}

/**
 * @param turns the tasks of each tenant, the next tenant first
 * @param budget prompt tokens of this iteration; interrupted streams may have more
 * @param room bytes left for new caches; a task that has begun already has its room
 * @param alone no other request holds memory, so the first task begins even if it does not fit
 * @returns the tasks to compute, in order
 */
export function planPrefill<T extends PrefillTask>(
  turns: readonly (readonly T[])[],
  budget: number,
  room: number,
  alone: boolean,
): Chunk<T>[] {
  const runnable = admissible(turns, room, alone);
  const given = new Map<T, number>();
  let spent = 0;
  const give = (task: T | undefined, upTo: number, share = upTo) => {
    if (task === undefined) return;
    const tokens = Math.min(share, upTo - spent, task.left - (given.get(task) ?? 0));
    if (tokens <= 0) return;
    given.set(task, (given.get(task) ?? 0) + tokens);
    spent += tokens;
  };
  const half = () => Math.ceil((budget - spent) / 2);
  give(runnable[0]?.[0], budget, half());
  const interrupted = runnable.flat().filter((task) => task.interrupted);
  for (const task of interrupted.sort(byAge)) give(task, INTERRUPTED_BUDGET_FACTOR * budget);
  for (const [oldest, ...others] of runnable) {
    if (oldest !== runnable[0]?.[0]) give(oldest, budget, half());
    for (const task of others.sort((a, b) => a.left - b.left || a.order - b.order)) give(task, budget);
    give(oldest, budget);
  }
  return [...given].map(([task, tokens]) => ({ task, tokens }));
}

/**
 * @returns the tasks that have room, by tenants, and each tenant's oldest first. A task without
 *   room makes all tasks behind it wait too, because otherwise it might wait for ever.
 */
function admissible<T extends PrefillTask>(turns: readonly (readonly T[])[], room: number, alone: boolean): T[][] {
  let left = room;
  let isFirst = alone;
  let isBlocked = false;
  const hasRoom = ({ begun, bytes }: T): boolean => {
    if (begun) return true;
    isBlocked ||= bytes > left && !isFirst;
    if (!isBlocked) left -= bytes;
    return !isBlocked;
  };
  const chosen = turns.map((tasks) =>
    [...tasks].sort(byAge).filter((task) => {
      const fits = hasRoom(task);
      if (fits) isFirst = false;
      return fits;
    }),
  );
  return chosen.filter((tasks) => tasks.length > 0);
}

function byAge(a: PrefillTask, b: PrefillTask): number {
  return a.order - b.order;
}

/** A request that holds memory. */
export interface Holder {
  /** Place in the order of arrival; smaller is older. */
  readonly order: number;
  /** Bytes of the request's caches. */
  readonly bytes: number;
}

/**
 * @param decodedAgoMs time since the last token of the rows that decode
 * @returns whether these rows wait for one more iteration, because `plan` has interrupted streams
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
