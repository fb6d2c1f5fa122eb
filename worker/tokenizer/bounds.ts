/**
 * Checks the size of a prompt on the main thread, before the prompt costs anything. The check uses
 * no recursion, because the client decides the depth of nested messages.
 */
import type { PromptSpec } from "#shared/contract/generation.js";
import { fixedError, InferenceError } from "#shared/errors.js";

const MAX_PROMPT_BYTES = 2 ** 20;
const MAX_PROMPT_TOKENS = 2 ** 20;
/** Messages are JSON, and no template reads JSON of greater depth than this. */
const MAX_DEPTH = 32;

/** A token in bytes, as the tokenizer takes and gives it. */
const TOKEN_BYTES = 4;

/**
 * @returns the size of the prompt in bytes
 * @throws InferenceError `invalid_argument` for a prompt that is too large or too deep
 */
export function checkBounds(prompt: PromptSpec): number {
  if (prompt.kind === "tokens") {
    if (prompt.tokens.length > MAX_PROMPT_TOKENS) {
      throw new InferenceError("invalid_argument", `the prompt has more than ${MAX_PROMPT_TOKENS} tokens`);
    }
    return prompt.tokens.length * TOKEN_BYTES;
  }
  const size = new PromptSize();
  if (prompt.kind === "text") size.addBytes(Buffer.byteLength(prompt.text));
  else size.addJson(prompt.messages);
  return size.bytes;
}

/** Adds up the size of a prompt until it is too large. */
class PromptSize {
  bytes = 0;

  /** @throws InferenceError `invalid_argument` */
  addBytes(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes > MAX_PROMPT_BYTES) {
      throw new InferenceError("invalid_argument", `the prompt is larger than ${MAX_PROMPT_BYTES} bytes`);
    }
  }

  /** @throws InferenceError `invalid_argument` */
  addJson(json: object): void {
    const left: { value: object; depth: number }[] = [{ value: json, depth: 0 }];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { value, depth } = next;
      if (depth > MAX_DEPTH) throw fixedError("invalid_argument", "nestedTooDeeply");
      const keys = Array.isArray(value) ? undefined : Object.keys(value);
      const inner: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
      // Each value counts as one byte even without a text, because there can be many.
      this.addBytes(inner.length);
      for (const key of keys ?? []) this.addBytes(Buffer.byteLength(key));
      for (const item of inner) {
        if (typeof item === "string") this.addBytes(Buffer.byteLength(item));
        else if (typeof item === "object" && item !== null) left.push({ value: item, depth: depth + 1 });
      }
    }
  }
}
