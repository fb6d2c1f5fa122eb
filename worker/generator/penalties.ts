/** What a request asks to change in the model's logits before anything is chosen: biases, penalties, and no end before `minTokens`. */
import type { SamplingSpec } from "#shared/contract/generation.js";
import type { TokenCounts } from "./token-counts.js";

let scratch = new Float32Array(0);

/** Whether `TokenCounts` matter to the request at all. */
export function penalises(spec: SamplingSpec): boolean {
  return spec.repetitionPenalty !== 1 || spec.presencePenalty !== 0 || spec.frequencyPenalty !== 0;
}

/**
 * @param index how many tokens the choice has so far
 * @returns `logits` themselves if nothing changes, else a changed copy that is good until the next call
 */
export function adjusted(
  logits: Float32Array,
  history: TokenCounts,
  spec: SamplingSpec,
  index: number,
  eos: readonly number[],
): Float32Array {
  const tooEarly = index < spec.minTokens;
  if (spec.logitBias.length === 0 && !penalises(spec) && !tooEarly) return logits;
  if (scratch.length !== logits.length) scratch = new Float32Array(logits.length);
  scratch.set(logits);
  for (const [token, bias] of spec.logitBias) if (token < scratch.length) scratch[token] = at(scratch, token) + bias;
  if (penalises(spec)) penalise(scratch, history, spec);
  if (tooEarly) {
    for (const token of eos) forbid(scratch, token);
    for (const token of spec.stopTokens) forbid(scratch, token);
  }
  return scratch;
}

function penalise(logits: Float32Array, { ids, outputs }: TokenCounts, spec: SamplingSpec): void {
  const { repetitionPenalty, presencePenalty, frequencyPenalty } = spec;
  for (let slot = 0; slot < ids.length; slot++) {
    const token = ids[slot] as number;
    if (token >= logits.length) continue;
    const count = outputs[slot] as number;
    const logit = at(logits, token);
    const repeated = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty;
    logits[token] = repeated - frequencyPenalty * count - (count > 0 ? presencePenalty : 0);
  }
}

function forbid(logits: Float32Array, token: number): void {
  if (token < logits.length) logits[token] = -Infinity;
}

function at(logits: Float32Array, token: number): number {
  return logits[token] as number;
}
