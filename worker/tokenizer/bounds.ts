/** How large a prompt may be: looked at before it costs anything, and without recursion, because its depth is the client's. */
import type { PromptSpec } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";

const MAX_PROMPT_BYTES = 2 ** 20;
const MAX_PROMPT_TOKENS = 2 ** 20;
/** Messages are JSON; what is deeper than this has no meaning to a template. */
const MAX_DEPTH = 32;

/** @throws InferenceError */
export function checkBounds(prompt: PromptSpec): void {
  if (prompt.kind === "tokens") {
    if (prompt.tokens.length > MAX_PROMPT_TOKENS) {
      throw new InferenceError("invalid_argument", `the prompt has more than ${MAX_PROMPT_TOKENS} tokens`);
    }
    return;
  }
  const bounds = new Bounds();
  if (prompt.kind === "text") bounds.count(Buffer.byteLength(prompt.text));
  else bounds.measure(prompt.messages);
}

class Bounds {
  private bytes = 0;

  /** @throws InferenceError */
  count(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes > MAX_PROMPT_BYTES) {
      throw new InferenceError("invalid_argument", `the prompt is larger than ${MAX_PROMPT_BYTES} bytes`);
    }
  }

  /** @throws InferenceError */
  measure(json: object): void {
    const left: { value: object; depth: number }[] = [{ value: json, depth: 0 }];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { value, depth } = next;
      if (depth > MAX_DEPTH) throw new InferenceError("invalid_argument", "the prompt is nested too deeply");
      const keys = Array.isArray(value) ? undefined : Object.keys(value);
      const inner: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
      // A value without text counts too: there can be many.
      this.count(inner.length);
      for (const key of keys ?? []) this.count(Buffer.byteLength(key));
      for (const item of inner) {
        if (typeof item === "string") this.count(Buffer.byteLength(item));
        else if (typeof item === "object" && item !== null) left.push({ value: item, depth: depth + 1 });
      }
    }
  }
}
