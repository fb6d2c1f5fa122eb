/**
 * The messages between a worker's main thread and a tokenizer's thread. The thread answers prompts
 * in their order, so that the main thread knows which prompt does not end.
 */
import type { PromptSpec } from "#shared/contract/generation.js";
import type { ErrorCode } from "#shared/errors.js";
import type { TokenizerConfig } from "./schema.js";

/** The facts of a model that the thread needs, all from the generator's folder. */
export interface TokenizerOptions {
  readonly name: string;
  readonly tokenizerFile: string;
  readonly tokenizerConfig: TokenizerConfig | undefined;
  readonly chatTemplate: string | undefined;
  /**
   * The size of the model's vocabulary, which may be smaller than the tokenizer's. Ids from this
   * one on are refused.
   */
  readonly vocabSize: number;
  readonly eos: readonly number[];
  readonly bos: number | undefined;
}

export interface EncodeRequest {
  readonly prompt: PromptSpec;
  /** Whether the tokens follow earlier tokens. If so, the encoder puts nothing before them. */
  readonly continues: boolean;
}

export type TokenizerMessage =
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "encoded"; readonly tokens: Int32Array<ArrayBuffer> }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string };
