/**
 * Log probabilities in the model's own distribution, before biases, penalties and temperature, as
 * OpenAI and vLLM report.
 */

/** The probability of a token. */
export interface Chance {
  readonly id: number;
  /** Natural logarithm of its probability. */
  readonly logprob: number;
}

/**
 * Stands for an impossible token, because JSON has no infinity. vLLM and OpenAI use the same
 * number.
 */
const LEAST = -9999;

/**
 * @param top number of likeliest tokens to return
 * @returns the log probability of `token`, and the likeliest tokens with their log probabilities:
 *   likeliest first, and lower ids first among equals
 */
export function logprobsOf(logits: Float32Array, token: number, top: number): { logprob: number; top: Chance[] } {
  const likeliest = firstOf(logits, Math.max(top, 1));
  const [best] = likeliest;
  const largest = best === undefined ? -Infinity : (logits[best] as number);
  let total = 0;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id] as number;
    if (logit > -Infinity) total += logit === largest ? 1 : Math.exp(logit - largest);
  }
  const logTotal = Math.log(total);
  const logprobOf = (id: number): number => {
    const logit = logits[id] as number;
    const logprob = (logit === largest ? 0 : logit - largest) - logTotal;
    return logprob > LEAST ? logprob : LEAST;
  };
  return {
    logprob: logprobOf(token),
    top: likeliest.slice(0, top).map((id) => ({ id, logprob: logprobOf(id) })),
  };
}

/**
 * Inserts into a short list, because after the first few tokens hardly any token is likely enough.
 * @returns the ids of the `most` largest logits, in order
 */
function firstOf(logits: Float32Array, most: number): number[] {
  const found: number[] = [];
  let least = -Infinity;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id] as number;
    if (!(logit > least)) continue;
    if (found.length === most) found.pop();
    let place = found.length;
    while (place > 0 && (logits[found[place - 1] as number] as number) < logit) place--;
    found.splice(place, 0, id);
    if (found.length === most) least = logits[found[most - 1] as number] as number;
  }
  return found;
}
