/** What passes between a worker's main thread and a tokenizer's thread: prompts, and their answers in the same order, so that it is known which one does not end. */
import type { PromptSpec } from "#shared/contract/generation.js";
import type { ErrorCode } from "#shared/errors.js";
import type { TokenizerConfig } from "./schema.js";

/** A generator's folder has all of these. */
export interface TokenizerOptions {
  readonly name: string;
  readonly tokenizerFile: string;
  readonly tokenizerConfig: TokenizerConfig | undefined;
  readonly chatTemplate: string | undefined;
  /** Of the model: tokens beyond it are refused. */
  readonly vocabSize: number;
  readonly eos: readonly number[];
  readonly bos: number | undefined;
}

export interface EncodeRequest {
  readonly prompt: PromptSpec;
  /** The tokens follow others: nothing is put before them. */
  readonly continues: boolean;
}

export type TokenizerMessage =
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "encoded"; readonly tokens: Int32Array<ArrayBuffer> }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string };
