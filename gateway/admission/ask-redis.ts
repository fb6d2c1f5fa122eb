/** Asks Redis for something that a client waits for and that is safe to ask twice. */
import { fixedError, InferenceError } from "#shared/errors.js";
import { isTransient, refusesWrites, retrying } from "#shared/retry.js";

/** How long an operation repeats while the gateway cannot reach Redis, in ms. */
const REDIS_BUDGET_MS = 2_000;

/**
 * Retries `call` while the gateway cannot reach Redis.
 * @throws InferenceError `unavailable` if that lasts longer than the budget
 */
export async function askRedis<T>(call: () => Promise<T>): Promise<T> {
  try {
    return made(await retrying(() => orRefusal(call), { budgetMs: REDIS_BUDGET_MS }));
  } catch (cause) {
    if (cause instanceof InferenceError || !isTransient(cause)) throw cause;
    throw fixedError("unavailable", "lookUp", { cause });
  }
}

/**
 * The same for a call that changes something.
 * @throws InferenceError `unavailable` if Redis refuses the first copy of the call, because Redis
 * takes no writes; `outcome_unknown` if Redis stays away, because Redis may have made the change
 */
export async function changeInRedis<T>(call: () => Promise<T>): Promise<T> {
  let copies = 0;
  const attempt = async (): Promise<Answer<T>> => {
    copies++;
    try {
      return await orRefusal(call);
    } catch (cause) {
      // Redis stays full for longer than a client can wait. If the reply to an earlier copy got
      // lost, that copy may have made the change.
      if (copies === 1 && refusesWrites(cause)) {
        return { refusal: fixedError("unavailable", "queue", { cause }) };
      }
      throw cause;
    }
  };
  try {
    return made(await retrying(attempt, { budgetMs: REDIS_BUDGET_MS }));
  } catch (cause) {
    if (cause instanceof InferenceError || !isTransient(cause)) throw cause;
    throw fixedError("outcome_unknown", "change", { cause });
  }
}

type Answer<T> = { readonly made: T } | { readonly refusal: InferenceError };

/** A refusal by the call itself is its answer: another try would only keep the client waiting. */
async function orRefusal<T>(call: () => Promise<T>): Promise<Answer<T>> {
  try {
    return { made: await call() };
  } catch (error) {
    if (error instanceof InferenceError) return { refusal: error };
    throw error;
  }
}

function made<T>(answer: Answer<T>): T {
  if ("made" in answer) return answer.made;
  throw answer.refusal;
}
