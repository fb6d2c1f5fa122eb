/**
 * Retries calls that are safe to repeat. A second call of any script of Baton does no harm, so only
 * time bounds the retries.
 */
import { realWorld, type World } from "./world.js";

/** Whether the same call may succeed later: the link was lost, or the server said "not now". */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name !== "ReplyError") return !(error instanceof TypeError);
  return notNow.test(error.message);
}

/**
 * The errors with which Redis refuses a call that may succeed later. The first line is for a server
 * that starts, is busy or takes no writes. The second is for a server that has become a replica, or
 * whose primary is lost. The third is for a Cluster that serves a slot elsewhere, moves a slot, or
 * does not serve a slot. With NOREPLICAS, Redis takes no writes until enough replicas listen.
 */
const notNow = new RegExp(
  `^(${[
    ["LOADING", "BUSY", "MISCONF", "OOM", "NOREPLICAS"],
    ["READONLY", "MASTERDOWN", "UNBLOCKED"],
    ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"],
  ]
    .flat()
    .join("|")})\\b`,
);

/**
 * Whether Redis answers but takes no writes: Redis is full, cannot write to disk, or has too few
 * replicas. Callers then still retry calls that finish work, but not calls that begin work.
 */
export function refusesWrites(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError" && /^(OOM|MISCONF|NOREPLICAS)/.test(error.message);
}

export interface RetryPolicy {
  /** How long to retry, the first attempt included. */
  readonly budgetMs: number;
  readonly signal?: AbortSignal;
  readonly world?: World;
}

/**
 * Repeats a call until it succeeds, with pauses that grow from 10 to 200 ms.
 * @throws the last error if the time is over or `signal` has aborted, and at once an error that is
 *   not transient
 */
export async function retrying<T>(call: () => Promise<T>, policy: RetryPolicy): Promise<T> {
  const { budgetMs, signal, world = realWorld } = policy;
  const giveUpAt = world.now() + budgetMs;
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, 200)) {
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error) || signal?.aborted === true || world.now() + pauseMs > giveUpAt) throw error;
    }
    await delay(pauseMs * (0.5 + world.random() / 2), signal, world);
  }
}

/**
 * Resolves with the promise, or after `ms` without it.
 * @returns whether the promise has resolved
 * @throws the promise's error, if it rejects in time
 */
export function within(ms: number, promise: Promise<unknown>, world = realWorld): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = world.after(ms, () => resolve(false));
    promise.finally(cancel).then(() => resolve(true), reject);
  });
}

/** Resolves after `ms`, or at once when `signal` aborts. */
export function delay(ms: number, signal?: AbortSignal, world = realWorld): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = () => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = world.after(ms, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}
