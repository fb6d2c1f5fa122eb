/**
 * Decides what an iteration computes; the engine only carries it out. The rules: whoever decodes, decodes; what is left of the iteration goes to prefills, half of it to
 * the oldest and the rest to interrupted streams as they came, then to whoever has least left, so neither a long prompt nor a stream of short ones keeps anybody waiting for
 * ever; when the caches outgrow their memory the youngest gives way, so the oldest always finishes.
 */

/** A prompt, or a history to recompute, that waits for its forward passes. */
export interface PrefillTask {
  /** Arrival; smaller is older. */
  readonly order: number;
  /** Tokens still to compute. */
  readonly left: number;
  /** Bytes its cache will take once it is whole, beyond what it holds. */
  readonly bytes: number;
  readonly begun: boolean;
  /** Its reader has had tokens already, and waits in the middle. */
  readonly interrupted: boolean;
}

/** Interrupted streams may have so many times an iteration's tokens, as far as they come in `SLICE_MS`. */
const INTERRUPTED = 32;

/**
 * Those that run wait for interrupted streams no longer than this at a time. When a worker dies another has all of its streams to compute again: better that its own wait once,
 * for a moment, than those of the dead for seconds.
 */
export const MOST_WAIT_MS = 250;
/** In pieces that are no longer than this: what a piece gives is on its way to its readers while the next one is computed. */
export const SLICE_MS = 60;

export interface Chunk<T> {
  readonly task: T;
  readonly tokens: number;
}

/**
 * @param budget tokens of this iteration; interrupted streams may have more.
 * @param room bytes that new caches may still take; a task that has begun has its room. The oldest of all begins in any case when `alone`: nothing else holds memory.
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
  for (const task of runnable) if (task.interrupted) give(task, INTERRUPTED * budget);
  for (const task of byLength) if (task !== oldest) give(task, budget);
  give(oldest, budget);
  return [...given].map(([task, tokens]) => ({ task, tokens }));
}

/** Oldest first; one that finds no room makes younger ones wait too, or it might wait for ever. */
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

export interface Holder {
  readonly order: number;
  /** Bytes that its caches hold. */
  readonly bytes: number;
}

/** @param decodedAgoMs since those that run last had a token. @returns whether they wait for the interrupted streams of `plan` once more */
export function planPause(plan: readonly Chunk<PrefillTask>[], decodedAgoMs: number): boolean {
  return decodedAgoMs < MOST_WAIT_MS && plan.some(({ task }) => task.interrupted);
}

/** @returns who gives way so that at most `excess` bytes too many become none: youngest first, never the oldest. */
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
