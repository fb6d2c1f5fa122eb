/** What a generation costs of its owners' tokens per minute when it is admitted. */
import type { TokenCharge } from "#shared/queue/pieces/rates.js";
import type { PromptSpec } from "#shared/contract/generation.js";
import type { GenerationRequest } from "./inference.js";

/** The gateway has no tokenizer: so many bytes of text count as a token. */
const BYTES_A_TOKEN = 4;

/**
 * Without `max_tokens` an answer may fill the model's context.
 * @returns the most that the generation may use, as far as the gateway knows; at its end it gets
 * back the rest, or owes more
 */
export function tokenChargeOf({ spec, model }: Pick<GenerationRequest, "spec" | "model">): TokenCharge {
  const { prompt, sampling } = spec;
  const { choices, maxTokens } = sampling;
  const ofPrompt = tokensOf(prompt);
  const most = maxTokens ?? Math.max(1, (model.generator?.contextLength ?? 0) - ofPrompt);
  return { cost: ofPrompt + most * choices, prompt: ofPrompt, choices };
}

function tokensOf(prompt: PromptSpec): number {
  switch (prompt.kind) {
    case "tokens":
      return prompt.tokens.length;
    case "text":
      return Math.ceil(Buffer.byteLength(prompt.text) / BYTES_A_TOKEN);
    case "chat":
      return Math.ceil(Buffer.byteLength(JSON.stringify(prompt.messages)) / BYTES_A_TOKEN);
  }
}
