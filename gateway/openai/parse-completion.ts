/** The body of `POST /v1/completions`. */
import type { PromptSpec } from "#shared/contract/generation.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { ParameterFault, shown } from "../generation/fault.js";
import { refuseUnobeyed } from "../generation/known.js";
import { textPrompt, tokenPrompt } from "../generation/prompt.js";
import { given, readBoolean, readInteger } from "../generation/read-member.js";
import { readSampling, type Generator } from "../generation/sampling.js";
import { completionMembers } from "./known.js";
import { generationOf, readDelivery, refuseFormats, type Delivery, type ParsedGeneration } from "./parse-common.js";

export interface ParsedCompletion {
  /** One for each prompt; never empty. */
  readonly generations: readonly ParsedGeneration[];
  /** Of each prompt. */
  readonly choices: number;
  /** What each prompt's answers begin with, if they do. */
  readonly echoes: readonly string[];
  readonly delivery: Delivery;
}

const maxPrompts = 32;
const maxLogprobs = 20;

/** OpenAI's, for this path alone: a chat goes on until it ends by itself. */
const usualMaxTokens = 16;

/** @throws InferenceError */
export function parseCompletion(
  body: JsonObject,
  generator: Generator,
  idempotencyKey: string | undefined,
): ParsedCompletion {
  refuseUnobeyed(body, completionMembers);
  refuseFormats(body);
  const suffix = given(body, "suffix");
  if (suffix !== undefined && suffix !== "") throw new ParameterFault("suffix", "suffix is not supported");
  const logprobs = readInteger(body, "logprobs", 0, maxLogprobs) ?? null;
  const prompts = readPrompts(given(body, "prompt"), generator);
  const echoes = readEchoes(body, prompts, logprobs);
  const generations = prompts.map((prompt, index) => {
    const key = prompts.length === 1 ? idempotencyKey : keyOfPrompt(idempotencyKey, index);
    const sampling = readSampling(body, generator, { logprobs, maxTokens: usualMaxTokens, idempotencyKey: key });
    return generationOf(body, prompt, sampling, key);
  });
  const choices = generations[0]?.spec.sampling.choices ?? 1;
  if (prompts.length > 1 && generations.some(({ sequence }) => sequence !== undefined)) {
    throw new ParameterFault("prompt", "prompt must be a single one for a turn of a conversation");
  }
  return { generations, choices, echoes, delivery: readDelivery(body) };
}

/** A retry finds each prompt's generation again. No client's key is one of these: theirs hold no control characters. */
function keyOfPrompt(idempotencyKey: string | undefined, index: number): string | undefined {
  return idempotencyKey === undefined ? undefined : `${idempotencyKey}\n${index}`;
}

function readPrompts(value: JsonValue | undefined, generator: Generator): PromptSpec[] {
  if (value === undefined) throw new ParameterFault("prompt", "prompt must be given");
  if (!Array.isArray(value)) return [onePrompt(value, generator)];
  if (value.every((item) => typeof item === "number")) return [tokenPrompt(value, "prompt", generator)];
  if (value.length > maxPrompts) {
    throw new ParameterFault("prompt", `prompt has ${value.length} prompts, more than the limit of ${maxPrompts}`);
  }
  return value.map((item) => onePrompt(item, generator));
}

function onePrompt(value: JsonValue, generator: Generator): PromptSpec {
  if (typeof value === "string") return textPrompt(value, "prompt");
  if (Array.isArray(value)) return tokenPrompt(value, "prompt", generator);
  throw new ParameterFault(
    "prompt",
    `prompt must be a string, a list of tokens or a list of these, got ${shown(value)}`,
  );
}

/** The gateway has no tokenizer: it can give a text back, but no text of tokens and no chances of a prompt's. */
function readEchoes(body: JsonObject, prompts: readonly PromptSpec[], logprobs: number | null): string[] {
  if (readBoolean(body, "echo") !== true) return [];
  if (logprobs !== null) throw new ParameterFault("echo", "echo is not supported together with logprobs");
  return prompts.map((prompt) => {
    if (prompt.kind === "text") return prompt.text;
    throw new ParameterFault("echo", "echo is only supported for prompts that are text");
  });
}
