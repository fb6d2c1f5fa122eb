/** A generator as a lane runs it. */
import type { TokenizerHost } from "../tokenizer/host.js";
import type { GeneratorHost } from "./host.js";

export interface ServingGenerator {
  readonly name: string;
  readonly version: string;
  /** Most tokens of prompt and output together. */
  readonly contextLength: number;
  /** Choices that are generated at once; past that, requests wait in the queue. */
  readonly slots: number;
  /** How long a conversation is kept between its turns. */
  readonly maxIdleMs: number;
  /** Memory of the caches of keys and values. */
  readonly kvBytes: number;
  readonly host: GeneratorHost;
  readonly tokenizer: TokenizerHost;
}
