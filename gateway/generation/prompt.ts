/**
 * Checks a prompt before the gateway queues the request. Only workers have tokenizers, so a text
 * stays a text.
 */
import type { PromptSpec } from "#shared/contract/generation.js";
import type { JsonValue } from "#shared/json/parse.js";
import { ParameterError } from "./parameters.js";
import { readTokenIds } from "./token-parameters.js";
import type { GeneratorInfo } from "./sampling.js";

/**
 * Most bytes of a prompt. Only a tokenizer can count tokens, and it may take more than linear time.
 */
const maxPromptBytes = 1024 * 1024;

/**
 * @param name the parameter that holds the prompt
 * @throws ParameterError
 */
export function textPrompt(text: string, name: string): PromptSpec {
  if (text === "") throw new ParameterError(name, `${name} must not be empty`);
  checkPromptBytes(Buffer.byteLength(text), name);
  return { kind: "text", text };
}

/** @throws ParameterError */
export function checkPromptBytes(bytes: number, name: string): void {
  if (bytes <= maxPromptBytes) return;
  throw new ParameterError(name, `${name} has ${bytes} bytes, more than the limit of ${maxPromptBytes}`);
}

/**
 * @param name the parameter that holds the prompt
 * @throws ParameterError
 */
export function tokenPrompt(tokens: readonly JsonValue[], name: string, generator: GeneratorInfo): PromptSpec {
  const { contextLength, vocabSize } = generator;
  if (tokens.length === 0) throw new ParameterError(name, `${name} must not be empty`);
  if (tokens.length >= contextLength) {
    throw new ParameterError(
      name,
      `${name} has ${tokens.length} tokens, which leaves no room in the model's context of ${contextLength}`,
    );
  }
  return { kind: "tokens", tokens: readTokenIds(tokens, name, vocabSize) };
}
