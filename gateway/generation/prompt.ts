/** What a prompt may be, before the worker's tokenizer sees it. */
import type { PromptSpec } from "#shared/contract/generation.js";
import type { JsonValue } from "#shared/json/parse.js";
import { ParameterFault } from "./fault.js";
import type { Generator } from "./sampling.js";
import { readTokens } from "./token-rules.js";

/** A tokenizer may be slower than linear: what it is given is bounded by bytes first. */
const maxPromptBytes = 1024 * 1024;

export function textPrompt(text: string, name: string): PromptSpec {
  if (text === "") throw new ParameterFault(name, `${name} must not be empty`);
  checkPromptBytes(Buffer.byteLength(text), name);
  return { kind: "text", text };
}

export function checkPromptBytes(bytes: number, name: string): void {
  if (bytes <= maxPromptBytes) return;
  throw new ParameterFault(name, `${name} has ${bytes} bytes, more than the limit of ${maxPromptBytes}`);
}

export function tokenPrompt(tokens: readonly JsonValue[], name: string, generator: Generator): PromptSpec {
  const { contextLength, vocabSize } = generator;
  if (tokens.length === 0) throw new ParameterFault(name, `${name} must not be empty`);
  if (tokens.length >= contextLength) {
    throw new ParameterFault(
      name,
      `${name} has ${tokens.length} tokens, which leaves no room in the model's context of ${contextLength}`,
    );
  }
  return { kind: "tokens", tokens: readTokens(tokens, name, vocabSize) };
}
