/** Retries for calls that are safe to repeat: every Baton script is idempotent, so only time bounds them. */

/** Errors after which the same call may succeed: lost links, and servers that say "not now". */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name !== "ReplyError") return !(error instanceof TypeError);
  return /^(LOADING|BUSY|READONLY|MASTERDOWN|MISCONF|OOM|NOREPLICAS|CLUSTERDOWN|TRYAGAIN|UNBLOCKED)/.test(
    error.message,
  );
}

/**
 * Whether Redis is there but takes no writes: it is full, cannot write to its disk, or has too few
 * replicas. Finishing what was begun is worth another try even so; beginning something new is not.
 */
export function refusesWrites(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError" && /^(OOM|MISCONF|NOREPLICAS)/.test(error.message);
}

export interface RetryPolicy {
  /** Total time to keep trying, first attempt included. */
  readonly budgetMs: number;
  readonly signal?: AbortSignal;
}

/** @throws the last error when the budget is spent, or at once when it is not transient. */
export async function retrying<T>(call: () => Promise<T>, { budgetMs, signal }: RetryPolicy): Promise<T> {
  const giveUpAt = performance.now() + budgetMs;
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, 200)) {
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error) || signal?.aborted === true || performance.now() + pauseMs > giveUpAt) throw error;
    }
    await delay(pauseMs * (0.5 + Math.random() / 2), signal);
  }
}

/** Resolves after `ms`, or at once when `signal` aborts. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}
