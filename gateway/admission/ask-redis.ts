/** Asks Redis for something that a client waits for and that is safe to ask twice. */
import { fixedError, InferenceError } from "#shared/errors.js";
import { isTransient, retrying } from "#shared/retry.js";

/** How long an operation is retried while Redis cannot be reached. */
const REDIS_BUDGET_MS = 2_000;

/**
 * Retries `call` while Redis cannot be reached.
 * @throws InferenceError `unavailable` where that lasts longer than the budget
 */
export async function askRedis<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await retrying(call, { budgetMs: REDIS_BUDGET_MS });
  } catch (cause) {
    if (cause instanceof InferenceError || !isTransient(cause)) throw cause;
    throw fixedError("unavailable", "lookUp", { cause });
  }
}

/**
 * The same for a call that changes something.
 * @throws InferenceError `outcome_unknown` where Redis stays away: the change may have been made
 */
export async function changeInRedis<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await retrying(call, { budgetMs: REDIS_BUDGET_MS });
  } catch (cause) {
    if (cause instanceof InferenceError || !isTransient(cause)) throw cause;
    throw fixedError("outcome_unknown", "change", { cause });
  }
}
