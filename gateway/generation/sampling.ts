/**
 * Reads and checks the sampling parameters of every protocol; no other code checks them. A refusal
 * names the parameter, the given value and the limit. Names and meanings are OpenAI's, or vLLM's if
 * OpenAI has none.
 */
import { createHash, randomBytes } from "node:crypto";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { SamplingSpec } from "#shared/contract/generation.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { ParameterError, preview, readBoolean, readInteger, readNumber, readValue, type Range } from "./parameters.js";
import { readLogitBias, readStops, readStopTokens } from "./token-parameters.js";

/** A generator's properties, as its workers announce them. */
export type GeneratorInfo = NonNullable<ServedModel["generator"]>;

/** The names of all parameters that `readSampling` reads. */
export const samplingParameterNames = [
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

/**
 * The sampling parameters of vLLM, old and new, that have no effect here, each with the values (as
 * JSON) that ask for nothing.
 */
export const unsupportedSamplingParameters: readonly (readonly [name: string, neutral: readonly string[]])[] = [
  ["allowed_token_ids", []],
  ["bad_words", ["[]", '""']],
  ["detokenize", ["true"]],
  ["early_stopping", ["false"]],
  ["guided_choice", []],
  ["guided_decoding", []],
  ["guided_decoding_backend", []],
  ["guided_grammar", []],
  ["guided_json", []],
  ["guided_regex", []],
  ["guided_whitespace_pattern", []],
  ["include_stop_str_in_output", ["false"]],
  ["length_penalty", ["1"]],
  ["logits_processors", ["[]"]],
  ["priority", ["0"]],
  ["prompt_logprobs", []],
  ["return_token_ids", ["false"]],
  ["skip_special_tokens", ["true"]],
  ["spaces_between_special_tokens", ["true", "false"]],
  ["structural_tag", []],
  ["structured_outputs", []],
  ["truncate_prompt_tokens", []],
  ["use_beam_search", ["false"]],
];

/** Values that each protocol decides for itself. */
export interface SamplingContext {
  /** How many alternatives to report beside each token; null: no log probabilities at all. */
  readonly logprobs: number | null;
  /**
   * The limit of new tokens if neither the client nor the model gives one; null: until the context
   * is full.
   */
  readonly maxTokens: number | null;
  readonly idempotencyKey: string | undefined;
}

const temperatureRange: Range = { min: 0, max: 100 };
const probabilityRange: Range = { min: 0, max: 1 };
const penaltyRange: Range = { min: -2, max: 2 };
/**
 * Most log probabilities in one record, for `n` tokens and their alternatives. Each takes about 100
 * bytes of the request's log.
 */
const maxLogprobsPerStep = 256;

/** @throws ParameterError for the first parameter out of its limits */
export function readSampling(body: JsonObject, generator: GeneratorInfo, context: SamplingContext): SamplingSpec {
  const { defaults, vocabSize } = generator;
  const maxTokens = readMaxTokens(body, generator, context.maxTokens);
  const n = readChoices(body, generator.maxChoices);
  checkLogprobsPerStep(n, context.logprobs);
  return {
    temperature: readNumber(body, "temperature", temperatureRange) ?? defaults.temperature ?? 1,
    topK: readTopK(body, vocabSize) ?? defaults.topK ?? 0,
    topP: readNumber(body, "top_p", { ...probabilityRange, above: true }) ?? defaults.topP ?? 1,
    minP: readNumber(body, "min_p", probabilityRange) ?? defaults.minP ?? 0,
    repetitionPenalty:
      readNumber(body, "repetition_penalty", { min: 0, max: 10, above: true }) ?? defaults.repetitionPenalty ?? 1,
    presencePenalty: readNumber(body, "presence_penalty", penaltyRange) ?? 0,
    frequencyPenalty: readNumber(body, "frequency_penalty", penaltyRange) ?? 0,
    logitBias: readLogitBias(body, vocabSize),
    seed: readSeed(readValue(body, "seed"), context.idempotencyKey),
    choices: n,
    logprobs: context.logprobs,
    stop: readStops(body),
    stopTokens: readStopTokens(body, vocabSize),
    ignoreEos: readBoolean(body, "ignore_eos") ?? false,
    minTokens: readMinTokens(body, maxTokens ?? generator.contextLength),
    maxTokens,
  };
}

/** @returns 0, no limit, for -1 (as vLLM writes it) and for the whole vocabulary or more */
function readTopK(body: JsonObject, vocabSize: number): number | undefined {
  const topK = readInteger(body, "top_k", -1, Number.MAX_SAFE_INTEGER);
  return topK !== undefined && (topK < 0 || topK >= vocabSize) ? 0 : topK;
}

/** Accepts `best_of` only if equal to `n`, because then it asks for nothing more. */
function readChoices(body: JsonObject, maxChoices: number): number {
  const choices = readInteger(body, "n", 1, maxChoices) ?? 1;
  const bestOf = readValue(body, "best_of");
  if (bestOf !== undefined && bestOf !== choices) {
    throw new ParameterError("best_of", `best_of must be the same as n, which is ${choices}, got ${preview(bestOf)}`);
  }
  return choices;
}

/**
 * Bounds a record's size, because the log stays in Redis's memory until after the end of its
 * stream, and the gateway reads and sends each record as a whole.
 */
function checkLogprobsPerStep(n: number, logprobs: number | null): void {
  if (logprobs === null || n * (logprobs + 1) <= maxLogprobsPerStep) return;
  throw new ParameterError(
    "n",
    `n of ${n} with ${logprobs} alternatives beside each token makes ${n * (logprobs + 1)} log probabilities a step, more than the limit of ${maxLogprobsPerStep}`,
  );
}

/** Reads the limit under either of its names. A refusal uses the client's name. */
function readMaxTokens(body: JsonObject, generator: GeneratorInfo, fallback: number | null): number | null {
  const { contextLength, defaults } = generator;
  const name = readValue(body, "max_completion_tokens") === undefined ? "max_tokens" : "max_completion_tokens";
  const asked = readInteger(body, name, 1, contextLength);
  if (asked !== undefined) return asked;
  const limit = defaults.maxTokens ?? fallback;
  return limit === null ? null : Math.min(limit, contextLength);
}

/** @param limit the most that `min_tokens` may be: `max_tokens`, or the context's length */
function readMinTokens(body: JsonObject, limit: number): number {
  const value = readValue(body, "min_tokens");
  if (value === undefined) return 0;
  const minTokens = readInteger(body, "min_tokens", 0, Number.MAX_SAFE_INTEGER) ?? 0;
  if (minTokens <= limit) return minTokens;
  throw new ParameterError("min_tokens", `min_tokens must be at most max_tokens, which is ${limit}, got ${minTokens}`);
}

/**
 * Returns the seed of a generation, a whole number below 2^53. If the client gives none, the
 * gateway, not the worker, draws the seed, so that a worker that takes over the request draws the
 * same tokens. With an Idempotency-Key the seed comes from the key, because a retry must be the
 * same request.
 */
function readSeed(value: JsonValue | undefined, idempotencyKey: string | undefined): number {
  if (value === undefined) {
    return first53Bits(idempotencyKey === undefined ? randomBytes(8) : digest(`key ${idempotencyKey}`));
  }
  if (typeof value !== "bigint" && !Number.isInteger(value)) {
    throw new ParameterError("seed", `seed must be a whole number, got ${preview(value)}`);
  }
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  return first53Bits(digest(`seed ${value as number | bigint}`));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function first53Bits(bytes: Buffer): number {
  return Number(bytes.readBigUInt64BE(0) >> 11n);
}
