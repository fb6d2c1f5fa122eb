/**
 * `POST /v1/completions`: parses the body and renders the answer. A body may hold several prompts.
 * Each prompt becomes a generation, and the answer numbers the choices of all prompts in one
 * series.
 */
import type { ChoiceDelta, PromptSpec, TokenChance } from "#shared/contract/generation.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import type { ModelDirectory } from "../../fleet/models.js";
import {
  ParameterError,
  preview,
  readBoolean,
  readInteger,
  readValue,
  refuseUnsupported,
  type ParameterRules,
} from "../../generation/parameters.js";
import { textPrompt, tokenPrompt } from "../../generation/prompt.js";
import { readSampling, type GeneratorInfo } from "../../generation/sampling.js";
import {
  commonParameterNames,
  harmlessParameters,
  readDelivery,
  refuseFormats,
  toGeneration,
  unsupportedParameters,
} from "./body.js";
import { requestedModel } from "./models.js";
import type { ChoiceRenderer, OpenAiRequest, RequestTerms } from "./request.js";

const completionParameters: ParameterRules = {
  obeyed: new Set([...commonParameterNames, "prompt", "suffix", "echo"]),
  harmless: harmlessParameters,
  unsupported: new Map([
    ...unsupportedParameters,
    ["add_special_tokens", ["true"]],
    ["tool_choice", ['"none"', '"auto"']],
    ["tools", ["[]"]],
  ]),
};

const maxPrompts = 32;
/** Most alternatives beside each token, as on the path for chats. */
const maxLogprobs = 20;

/** OpenAI's default, for this path alone. A chat runs until the model ends it. */
const defaultMaxTokens = 16;

/**
 * @param terms the terms outside of the body
 * @throws InferenceError `unknown_model`, or a ParameterError that names the refused parameter
 */
export function parseCompletionRequest(
  body: JsonObject,
  directory: ModelDirectory,
  idempotencyKey: string | undefined,
  terms: RequestTerms,
): OpenAiRequest {
  const { model, generator } = requestedModel(directory, body);
  refuseUnsupported(body, completionParameters);
  refuseFormats(body);
  const suffix = readValue(body, "suffix");
  if (suffix !== undefined && suffix !== "") throw new ParameterError("suffix", "suffix is not supported");
  const logprobs = readInteger(body, "logprobs", 0, maxLogprobs) ?? null;
  const prompts = readPrompts(readValue(body, "prompt"), generator);
  const echoes = readEchoes(body, prompts, logprobs);
  const generations = prompts.map((prompt, index) => {
    const key = prompts.length === 1 ? idempotencyKey : keyOfPrompt(idempotencyKey, index);
    const sampling = readSampling(body, generator, { logprobs, maxTokens: defaultMaxTokens, idempotencyKey: key });
    const budget = index === 0 ? terms.budget : terms.budget?.forPart();
    return { ...terms, budget, ...toGeneration(body, prompt, sampling, key), model };
  });
  const choices = generations[0]?.spec.sampling.choices ?? 1;
  if (prompts.length > 1 && generations.some(({ sequence }) => sequence !== undefined)) {
    throw new ParameterError("prompt", "prompt must be a single one for a turn of a conversation");
  }
  const delivery = readDelivery(body);
  if (prompts.length > 1 && terms.background) {
    throw new ParameterError("prompt", "prompt must be a single one for an answer that is fetched later");
  }
  return { model, generations, choices, delivery, renderer: completionRenderer(choices, echoes) };
}

/**
 * Derives a key for each prompt from the client's key, so that a retry finds each prompt's
 * generation again. No client can send a derived key, because a header holds no control characters.
 */
function keyOfPrompt(idempotencyKey: string | undefined, index: number): string | undefined {
  return idempotencyKey === undefined ? undefined : `${idempotencyKey}\n${index}`;
}

function readPrompts(value: JsonValue | undefined, generator: GeneratorInfo): PromptSpec[] {
  if (value === undefined) throw new ParameterError("prompt", "prompt must be given");
  if (!Array.isArray(value)) return [onePrompt(value, generator)];
  if (value.every((item) => typeof item === "number")) return [tokenPrompt(value, "prompt", generator)];
  if (value.length > maxPrompts) {
    throw new ParameterError("prompt", `prompt has ${value.length} prompts, more than the limit of ${maxPrompts}`);
  }
  return value.map((item) => onePrompt(item, generator));
}

function onePrompt(value: JsonValue, generator: GeneratorInfo): PromptSpec {
  if (typeof value === "string") return textPrompt(value, "prompt");
  if (Array.isArray(value)) return tokenPrompt(value, "prompt", generator);
  throw new ParameterError(
    "prompt",
    `prompt must be a string, a list of tokens or a list of these, got ${preview(value)}`,
  );
}

/**
 * Reads `echo`. The gateway has no tokenizer, so it can echo a prompt only if given as text, and
 * has no log probabilities of a prompt.
 * @returns the beginning of the answers to each prompt; empty if the client wants no echo
 */
function readEchoes(body: JsonObject, prompts: readonly PromptSpec[], logprobs: number | null): string[] {
  if (readBoolean(body, "echo") !== true) return [];
  if (logprobs !== null) throw new ParameterError("echo", "echo is not supported together with logprobs");
  return prompts.map((prompt) => {
    if (prompt.kind === "text") return prompt.text;
    throw new ParameterError("echo", "echo is only supported for prompts that are text");
  });
}

/**
 * Renders answers in the form of `/v1/completions`.
 * @param choices number of choices of each prompt
 * @param echoes the beginning of the choices of each prompt; empty without echo
 */
export function completionRenderer(choices: number, echoes: readonly string[]): ChoiceRenderer {
  /**
   * Characters of each choice sent so far with log probabilities, which is the `text_offset` of the
   * next token. Undefined before the choice's first chunk.
   */
  const sentCharacters: (number | undefined)[] = [];

  const chunkOf = (delta: ChoiceDelta, prompt: number): object[] => {
    const index = prompt * choices + delta.index;
    const text = sentCharacters[index] === undefined ? (echoes[prompt] ?? "") + delta.text : delta.text;
    if (text === "" && delta.finish_reason === undefined && delta.logprobs === undefined) return [];
    const logprobs =
      delta.logprobs === undefined ? null : completionLogprobs(delta.logprobs, sentCharacters[index] ?? 0);
    sentCharacters[index] =
      (sentCharacters[index] ?? 0) + (delta.logprobs === undefined ? 0 : textLength(delta.logprobs));
    return [{ index, text, logprobs, finish_reason: delta.finish_reason ?? null }];
  };

  return {
    idPrefix: "cmpl-",
    wholeObject: "text_completion",
    chunkObject: "text_completion",
    renderChoice: ({ text, logprobs, finishReason }, index, prompt) => ({
      index,
      text: (echoes[prompt] ?? "") + text,
      logprobs: logprobs === undefined ? null : completionLogprobs(logprobs, 0),
      finish_reason: finishReason,
    }),
    renderChunks: (record, prompt) => record.choices.flatMap((delta) => chunkOf(delta, prompt)),
    renderTextChunk: (text, prompt) => {
      const index = prompt * choices;
      if (sentCharacters[index] === undefined) return undefined;
      return text === '""' ? "" : `{"index":${index},"text":${text},"logprobs":null,"finish_reason":null}`;
    },
  };
}

type TokenLogprobs = NonNullable<ChoiceDelta["logprobs"]>;

/**
 * Renders log probabilities in the form of this path: one list for each member, instead of one
 * object for each token.
 * @param from position in its choice's text at which the first token begins
 */
function completionLogprobs(tokens: TokenLogprobs, from: number): object {
  const offsets: number[] = [];
  let offset = from;
  for (const token of tokens) {
    offsets.push(offset);
    offset += startedCharacters(token);
  }
  return {
    tokens: tokens.map(({ token }) => token),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(logprobByText),
    text_offset: offsets,
  };
}

function textLength(tokens: TokenLogprobs): number {
  return tokens.reduce((length, token) => length + startedCharacters(token), 0);
}

/**
 * Returns how many characters begin in this token. OpenAI counts characters, but a token may hold
 * only a part of a character. Counting first bytes of UTF-8 counts each character exactly once.
 */
function startedCharacters({ bytes }: TokenChance): number {
  return bytes.filter((byte) => (byte & 0xc0) !== 0x80).length;
}

/**
 * Returns the alternatives by their text, with the sampled token itself, which need not be among
 * the likeliest. Of several tokens with the same text only the likeliest appears.
 */
function logprobByText(sampled: TokenLogprobs[number]): Record<string, number> {
  const logprobs = new Map<string, number>();
  for (const { token, logprob } of [...sampled.top, sampled]) {
    if (!logprobs.has(token)) logprobs.set(token, logprob);
  }
  return Object.fromEntries(logprobs);
}
