/** What passes between a worker's main thread and a generator's thread. The main thread asks for every iteration, a few at a time, so the engine never runs far ahead of Redis. */
import type { SamplingSpec } from "#shared/contract/generation.js";
import type { ThreadOptions } from "../model/protocol.js";

export interface GeneratorOptions extends ThreadOptions {
  readonly tokenizerFile: string;
  readonly eos: readonly number[];
  readonly contextLength: number;
  readonly vocabSize: number;
  /** Of all caches, the known prefixes included. */
  readonly kvBytes: number;
  /** Tokens of prompts per iteration: the longest that a decoding row waits for others' prefill. */
  readonly prefillTokens: number;
}

/** What the log says of one choice of a request that was taken over. */
export interface ReplayedChoice {
  readonly tokens: readonly number[];
}

export interface NewGeneration {
  /** The entry id. */
  readonly key: string;
  readonly sampling: SamplingSpec;
  readonly prompt: Int32Array;
  /** Index of the next record. */
  readonly next: number;
  /** One per choice; empty token lists for a request that has not begun. */
  readonly replayed: readonly ReplayedChoice[];
}

export interface IterateRequest {
  /** Compute this one alone. */
  readonly only: string | undefined;
}

/** Heard at once: a request joins or leaves at the next iteration, however many have been asked for. */
export type Membership =
  { readonly kind: "add"; readonly generation: NewGeneration } | { readonly kind: "remove"; readonly key: string };

/** What a request got in this iteration. */
export interface Step {
  readonly key: string;
  readonly index: number;
  /** The record's JSON, as it goes to the log. */
  readonly record: string;
  readonly final: boolean;
  /** In the final step alone: prompt and first choice, for a conversation's next turn. */
  readonly history: Int32Array | undefined;
}

export interface Iteration {
  readonly steps: readonly Step[];
  /** Requests that the model itself refused. They are forgotten here. */
  readonly failed: readonly { readonly key: string; readonly reason: string }[];
}

export interface GeneratorFacts {
  readonly padding: boolean;
  readonly bytesPerToken: number;
}
