/**
 * Chooses a token from a row of logits. The same request, seed and place give the same token on
 * every worker.
 */
import type { SamplingSpec } from "#shared/contract/generation.js";
import { candidates } from "./candidates.js";
import { draw } from "./draw.js";
import { logprobsOf, type Chance } from "./logprobs.js";
import { adjusted, type TokenCounts } from "./penalties.js";

export interface Sampled {
  readonly token: number;
  /** Log probabilities of the token and of the likeliest tokens, if the request asks for them. */
  readonly logprobs?: { readonly logprob: number; readonly top: readonly Chance[] };
}

/**
 * @param logits one per token of the vocabulary; unchanged by the call
 * @param history tokens of the prompt and of the output, which count for penalties
 * @param choice index of the choice in the request, from 0
 * @param index number of tokens that the choice has so far
 * @throws Error if no token has a logit above -Infinity; NaN counts as -Infinity
 */
export function sample(
  logits: Float32Array,
  history: TokenCounts,
  spec: SamplingSpec,
  choice: number,
  index: number,
  limits: { readonly eos: readonly number[] },
): Sampled {
  const wanted = adjusted(logits, history, spec, index, limits.eos);
  const likeliest = firstLargest(wanted);
  if (likeliest === undefined) throw new Error("the model gave no usable logits");
  const token =
    spec.temperature === 0
      ? likeliest
      : draw(candidates(wanted, wanted[likeliest] as number, spec), spec.seed, choice, index);
  return spec.logprobs === null ? { token } : { token, logprobs: logprobsOf(logits, token, spec.logprobs) };
}

/**
 * @returns the id of the largest logit, the lowest id among equals; undefined if no logit is above
 *   -Infinity
 */
function firstLargest(logits: Float32Array): number | undefined {
  let first: number | undefined;
  let largest = -Infinity;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id] as number;
    if (logit > largest) {
      largest = logit;
      first = id;
    }
  }
  return first;
}
