/**
 * The messages between a worker's main thread and a tokenizer's thread. Prompts are answered in
 * their order, so that the main thread knows which one does not end.
 */
import type { PromptSpec } from "#shared/contract/generation.js";
import type { ErrorCode } from "#shared/errors.js";
import type { TokenizerConfig } from "./schema.js";

/** What the thread needs to know of a model; all of it comes from the generator's folder. */
export interface TokenizerOptions {
  readonly name: string;
  readonly tokenizerFile: string;
  readonly tokenizerConfig: TokenizerConfig | undefined;
  readonly chatTemplate: string | undefined;
  /**
   * The vocabulary of the model, which may be smaller than the tokenizer's; ids beyond are refused.
   */
  readonly vocabSize: number;
  readonly eos: readonly number[];
  readonly bos: number | undefined;
}

export interface EncodeRequest {
  readonly prompt: PromptSpec;
  /** Whether the tokens follow others, so that nothing is put before them. */
  readonly continues: boolean;
}

export type TokenizerMessage =
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "encoded"; readonly tokens: Int32Array<ArrayBuffer> }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string };
