/** How large a prompt may be: looked at before it costs anything, and without recursion, because its depth is the client's. */
import type { PromptSpec } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";

const MAX_PROMPT_BYTES = 2 ** 20;
const MAX_PROMPT_TOKENS = 2 ** 20;
/** Messages and tools are JSON; what is deeper than this has no meaning to a template. */
const MAX_DEPTH = 32;

/** @throws InferenceError */
export function checkBounds(prompt: PromptSpec): void {
  if (prompt.kind === "tokens") {
    if (prompt.tokens.length > MAX_PROMPT_TOKENS) {
      throw new InferenceError("invalid_argument", `the prompt has more than ${MAX_PROMPT_TOKENS} tokens`);
    }
    return;
  }
  let bytes = 0;
  const left: { value: unknown; depth: number }[] = [
    { value: prompt.kind === "text" ? prompt.text : [prompt.messages, prompt.tools], depth: 0 },
  ];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value, depth } = next;
    if (depth > MAX_DEPTH) throw new InferenceError("invalid_argument", "the prompt is nested too deeply");
    // A value without text counts too: there can be many.
    bytes += typeof value === "string" ? Buffer.byteLength(value) : 1;
    if (typeof value === "object" && value !== null) {
      for (const [key, inner] of Object.entries(value)) {
        if (!Array.isArray(value)) bytes += Buffer.byteLength(key);
        left.push({ value: inner, depth: depth + 1 });
      }
    }
    if (bytes > MAX_PROMPT_BYTES) {
      throw new InferenceError("invalid_argument", `the prompt is larger than ${MAX_PROMPT_BYTES} bytes`);
    }
  }
}
