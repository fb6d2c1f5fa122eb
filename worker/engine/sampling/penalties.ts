/**
 * Changes the model's logits as the request asks, before the sampler chooses a token: biases,
 * penalties, and no end before `minTokens`.
 */
import type { SamplingSpec } from "#shared/contract/generation.js";

/** Memory for the changed logits; all calls share this array. */
let scratch = new Float32Array(0);

/** @returns whether the request has a penalty, so that its `TokenCounts` matter */
export function penalises(spec: SamplingSpec): boolean {
  return spec.repetitionPenalty !== 1 || spec.presencePenalty !== 0 || spec.frequencyPenalty !== 0;
}

/**
 * @param logits one per token of the vocabulary; unchanged by the call
 * @param history tokens of the prompt and of the output
 * @param index number of tokens that the choice has so far
 * @param eos ids of the tokens that end a text
 * @returns `logits` if the request changes nothing, else a changed copy that is valid until the
 *   next call
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
  for (let place = 0; place < ids.length; place++) {
    const token = ids[place] as number;
    if (token >= logits.length) continue;
    const count = outputs[place] as number;
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

/**
 * Counts the tokens that a choice has seen. Penalties visit only the distinct tokens, which is far
 * cheaper than a visit to the whole vocabulary.
 */
export class TokenCounts {
  /** Distinct tokens, in order of first appearance. */
  readonly ids: number[] = [];
  /** One per place of `ids`: the token's count in the output; 0 for a token of the prompt alone. */
  readonly outputs: number[] = [];
  /** Token id → place in `ids`. */
  private readonly places = new Map<number, number>();

  constructor(prompt: ArrayLike<number> = [], output: ArrayLike<number> = []) {
    for (let i = 0; i < prompt.length; i++) this.placeOf(prompt[i] as number);
    for (let i = 0; i < output.length; i++) this.add(output[i] as number);
  }

  /** Counts one token of the output. */
  add(token: number): void {
    const place = this.placeOf(token);
    this.outputs[place] = (this.outputs[place] ?? 0) + 1;
  }

  private placeOf(token: number): number {
    const known = this.places.get(token);
    if (known !== undefined) return known;
    const place = this.ids.length;
    this.places.set(token, place);
    this.ids.push(token);
    this.outputs.push(0);
    return place;
  }
}
