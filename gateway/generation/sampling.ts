/**
 * The sampling parameters of every front door, checked here and nowhere else: a refusal names the parameter, what was given and the limit. Names and meanings are
 * OpenAI's, and vLLM's where OpenAI has none.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { SamplingSpec } from "#shared/contract/generation.js";
import type { JsonObject } from "#shared/json/parse.js";
import { ParameterFault, shown } from "./fault.js";
import { given, readBoolean, readInteger, readNumber, type Range } from "./read-member.js";
import { readSeed } from "./seed.js";
import { readLogitBias, readStops, readStopTokens } from "./token-rules.js";

export type Generator = NonNullable<ServedModel["generator"]>;

/** All that is read here. */
export const samplingMembers = [
  "temperature",
  "top_k",
  "top_p",
  "min_p",
  "repetition_penalty",
  "presence_penalty",
  "frequency_penalty",
  "logit_bias",
  "seed",
  "n",
  "best_of",
  "stop",
  "stop_token_ids",
  "ignore_eos",
  "min_tokens",
  "max_tokens",
  "max_completion_tokens",
];

/** What protocols decide for themselves. */
export interface SamplingChoices {
  readonly logprobs: number | null;
  /** Where neither the client nor the model says; null: until the context is full. */
  readonly maxTokens: number | null;
  readonly idempotencyKey: string | undefined;
}

const temperatureRange: Range = { min: 0, max: 100 };
const shareRange: Range = { min: 0, max: 1 };
const penaltyRange: Range = { min: -2, max: 2 };
/** Log probabilities in one record: of each of `n` tokens its own and its alternatives'. Each takes about 100 bytes of the request's log. */
const maxPerStep = 256;

/** @throws ParameterFault */
export function readSampling(body: JsonObject, generator: Generator, choices: SamplingChoices): SamplingSpec {
  const { defaults, vocabSize } = generator;
  const maxTokens = readMaxTokens(body, generator, choices.maxTokens);
  const n = readChoices(body, generator.maxChoices);
  checkPerStep(n, choices.logprobs);
  return {
    temperature: readNumber(body, "temperature", temperatureRange) ?? defaults.temperature ?? 1,
    topK: readTopK(body, vocabSize) ?? defaults.topK ?? 0,
    topP: readNumber(body, "top_p", { ...shareRange, above: true }) ?? defaults.topP ?? 1,
    minP: readNumber(body, "min_p", shareRange) ?? defaults.minP ?? 0,
    repetitionPenalty:
      readNumber(body, "repetition_penalty", { min: 0, max: 10, above: true }) ?? defaults.repetitionPenalty ?? 1,
    presencePenalty: readNumber(body, "presence_penalty", penaltyRange) ?? 0,
    frequencyPenalty: readNumber(body, "frequency_penalty", penaltyRange) ?? 0,
    logitBias: readLogitBias(body, vocabSize),
    seed: readSeed(given(body, "seed"), choices.idempotencyKey),
    choices: n,
    logprobs: choices.logprobs,
    stop: readStops(body),
    stopTokens: readStopTokens(body, vocabSize),
    ignoreEos: readBoolean(body, "ignore_eos") ?? false,
    minTokens: readMinTokens(body, maxTokens ?? generator.contextLength),
    maxTokens,
  };
}

/** Every token of the vocabulary is the same as no limit, which -1 is vLLM's way to ask for. */
function readTopK(body: JsonObject, vocabSize: number): number | undefined {
  const topK = readInteger(body, "top_k", -1, Number.MAX_SAFE_INTEGER);
  return topK !== undefined && (topK < 0 || topK >= vocabSize) ? 0 : topK;
}

function readChoices(body: JsonObject, maxChoices: number): number {
  const choices = readInteger(body, "n", 1, maxChoices) ?? 1;
  const bestOf = given(body, "best_of");
  if (bestOf !== undefined && bestOf !== choices) {
    throw new ParameterFault("best_of", `best_of must be the same as n, which is ${choices}, got ${shown(bestOf)}`);
  }
  return choices;
}

/** A log is kept in memory until after its stream's end, and each of its records is read and sent as a whole. */
function checkPerStep(n: number, logprobs: number | null): void {
  if (logprobs === null || n * (logprobs + 1) <= maxPerStep) return;
  throw new ParameterFault(
    "n",
    `n of ${n} with ${logprobs} alternatives beside each token makes ${n * (logprobs + 1)} log probabilities a step, more than the limit of ${maxPerStep}`,
  );
}

/** The name by which the client gave it is the one that it is told of. */
function readMaxTokens(body: JsonObject, generator: Generator, otherwise: number | null): number | null {
  const { contextLength, defaults } = generator;
  const name = given(body, "max_completion_tokens") === undefined ? "max_tokens" : "max_completion_tokens";
  const asked = readInteger(body, name, 1, contextLength);
  if (asked !== undefined) return asked;
  const usual = defaults.maxTokens ?? otherwise;
  return usual === null ? null : Math.min(usual, contextLength);
}

function readMinTokens(body: JsonObject, most: number): number {
  const value = given(body, "min_tokens");
  if (value === undefined) return 0;
  const minTokens = readInteger(body, "min_tokens", 0, Number.MAX_SAFE_INTEGER) ?? 0;
  if (minTokens <= most) return minTokens;
  throw new ParameterFault("min_tokens", `min_tokens must be at most max_tokens, which is ${most}, got ${minTokens}`);
}
