/**
 * What passes between a worker's main thread and the thread of a generator's engine. The main
 * thread asks for every iteration, a few at a time, so the engine never runs far ahead of Redis.
 */
import type { SamplingSpec } from "#shared/contract/generation.js";
import type { SessionOptions } from "../onnx/graph.js";

export interface GeneratorOptions extends SessionOptions {
  /**
   * By what share of the largest one the logits of a GPU may differ from the CPU's; undefined for
   * the usual one.
   */
  readonly tolerance: number | undefined;
  readonly tokenizerFile: string;
  /** Ids of the tokens that end a text. */
  readonly eos: readonly number[];
  /** Most tokens that a prompt and its output have together. */
  readonly contextLength: number;
  readonly vocabSize: number;
  /** Memory for all caches, known prefixes included, in bytes. */
  readonly kvBytes: number;
  /**
   * Prompt tokens that one iteration computes: the rows that decode wait no longer than these take
   * for the prefill of new requests.
   */
  readonly prefillTokens: number;
}

/** What the log says about one choice of a request that was taken over. */
export interface ReplayedChoice {
  /** Ids of all tokens that the choice has drawn. */
  readonly tokens: readonly number[];
}

/** A request as the engine takes it. */
export interface NewGeneration {
  /** Id of the request's entry, by which the engine names it. */
  readonly key: string;
  readonly sampling: SamplingSpec;
  readonly prompt: Int32Array;
  /** Index of the record that the engine gives first: how many the log has. */
  readonly next: number;
  /** One per choice; for a request that has not begun, each without tokens. */
  readonly replayed: readonly ReplayedChoice[];
}

export interface IterateRequest {
  /** Key of the request to compute alone; undefined for all. */
  readonly only: string | undefined;
}

/**
 * A change that the engine hears at once: the request joins or leaves at the next iteration that
 * has not begun, however many were asked for.
 */
export type EngineChange =
  { readonly kind: "add"; readonly generation: NewGeneration } | { readonly kind: "remove"; readonly key: string };

/** What one request got in an iteration. */
export interface Step {
  readonly key: string;
  /** Index of the record. */
  readonly index: number;
  /** The record's JSON, as it goes to the log. */
  readonly record: string;
  readonly final: boolean;
  /**
   * Tokens of the prompt and of the first choice, for a conversation's next turn; in the final step
   * only.
   */
  readonly history: Int32Array | undefined;
}

export interface Iteration {
  readonly steps: readonly Step[];
  /** Requests that the model itself refused. The engine has forgotten them. */
  readonly failed: readonly { readonly key: string; readonly reason: string }[];
}

/** What the engine's thread says once it has loaded its model. */
export interface GeneratorFacts {
  /** Whether rows of different lengths may share a forward pass (`Decoder.padding`). */
  readonly padding: boolean;
  /** Bytes that one token of one row takes in the caches. */
  readonly bytesPerToken: number;
  /** What could not be checked of the model; it is served all the same. */
  readonly warnings: readonly string[];
}
