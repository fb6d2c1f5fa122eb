/**
 * The messages between a worker's main thread and the thread of a generator's engine. The main
 * thread asks for every iteration, a few at a time, so the engine never runs far ahead of Redis.
 */
import type { SamplingSpec } from "#shared/contract/generation.js";
import type { SessionOptions } from "../onnx/graph.js";
import type { Sharer } from "../shares/shares.js";

export interface GeneratorOptions extends SessionOptions {
  /**
   * The largest allowed difference between the logits of a GPU and the CPU's, as a share of the
   * largest logit; undefined for the default.
   */
  readonly tolerance: number | undefined;
  readonly tokenizerFile: string;
  /** Ids of the tokens that end a text. */
  readonly eos: readonly number[];
  /** Most tokens of a prompt and its output together. */
  readonly contextLength: number;
  readonly vocabSize: number;
  /** Memory for all caches, known prefixes included, in bytes. */
  readonly kvBytes: number;
  /**
   * Prompt tokens per iteration. This number bounds how long the rows that decode wait for the
   * prefill of new requests.
   */
  readonly prefillTokens: number;
}

/** The log's record of one choice of a request from another worker. */
export interface ReplayedChoice {
  /** Ids of all tokens that the choice has drawn. */
  readonly tokens: readonly number[];
}

/** A request in the form that the engine takes; tenants share the prompt tokens of iterations. */
export interface NewGeneration extends Sharer {
  /** Id of the request's entry, which is the request's name in the engine. */
  readonly key: string;
  readonly sampling: SamplingSpec;
  readonly prompt: Int32Array;
  /** Index of the engine's first record: the number of records in the log. */
  readonly next: number;
  /** One per choice; in a new request each choice has no tokens. */
  readonly replayed: readonly ReplayedChoice[];
}

export interface IterateRequest {
  /** Key of the request to compute alone; undefined for all. */
  readonly only: string | undefined;
}

/**
 * A change that the engine applies at once. The request joins or leaves at the next iteration that
 * has not begun, even if the main thread has already asked for several iterations.
 */
export type EngineChange =
  { readonly kind: "add"; readonly generation: NewGeneration } | { readonly kind: "remove"; readonly key: string };

/** The result of one request in an iteration. */
export interface Step {
  readonly key: string;
  /** Index of the record. */
  readonly index: number;
  /** The record's JSON, as the log stores it. */
  readonly record: string;
  readonly final: boolean;
  /**
   * Tokens of the prompt and of the first choice, for a conversation's next turn; in the final step
   * only.
   */
  readonly history: Int32Array | undefined;
  /** The number of tokens that the record adds, of all choices. */
  readonly tokens: number;
  /** Tokens of the prompt that were in a cache, in the first record; 0 in other records. */
  readonly cached: number;
  /** Why the first choice ended; in the final step only. */
  readonly finish: "stop" | "length" | undefined;
}

export interface Iteration {
  readonly steps: readonly Step[];
  /** Requests that the model itself refused. The engine has forgotten them. */
  readonly failed: readonly { readonly key: string; readonly reason: string }[];
  /** How long the model took for parts of prompts, in ms. */
  readonly prefilled: readonly { readonly key: string; readonly ms: number }[];
  /** The number of forward passes. */
  readonly passes: number;
  /** Tokens that the passes took in, of prompts and of rows that decode. */
  readonly computed: number;
  /** Bytes of the caches of requests after the iteration, without known prefixes. */
  readonly cacheBytes: number;
}

/** The answer of the engine's thread. */
export interface TimedIteration extends Iteration {
  /** How long the iteration took, in ms. */
  readonly ranMs: number;
}

/** The facts that the engine's thread reports after loading its model. */
export interface GeneratorFacts {
  /** Whether rows of different lengths may share a forward pass (`Decoder.padding`). */
  readonly padding: boolean;
  /** Bytes of one token of one row in the caches. */
  readonly bytesPerToken: number;
  /**
   * Facts about the model that the worker could not check. The worker serves the model all the
   * same.
   */
  readonly warnings: readonly string[];
}
