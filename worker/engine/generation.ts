/**
 * One request in the engine. Its choices advance in step, so that record i holds token i of each
 * choice.
 */
import type { ChoiceDelta, TokenRecord } from "#shared/contract/generation.js";
import { Choice } from "./choice.js";
import type { KvBlock } from "./kv.js";
import type { NewGeneration, Step } from "./protocol.js";
import type { Sharer } from "../shares/shares.js";
import type { TextOf } from "./text/text.js";

/**
 * Tokens to compute before some choices of a request can decode. These choices have the same tokens
 * so far, so at first they share one cache.
 */
export interface Prefill {
  readonly choices: readonly Choice[];
  /** Prompt and output so far. */
  readonly tokens: Int32Array;
  /** The cache, a block of one row; undefined until the first pass. */
  block: KvBlock | undefined;
  /** Number of computed tokens. */
  done: number;
  /** The logits after the last token; undefined until the pass over that token. */
  logits: Float32Array | undefined;
}

export interface GenerationLimits {
  readonly text: TextOf;
  /** Ids of the tokens that end a text. */
  readonly eos: readonly number[];
  /** Most tokens of a prompt and its output together. */
  readonly contextLength: number;
}

export class Generation implements Sharer {
  readonly key: string;
  readonly level: number;
  readonly tenant: string;
  readonly weight: number;
  /** Place in the order of arrival at this engine; smaller is older. */
  readonly order: number;
  readonly prompt: Int32Array;
  readonly choices: readonly Choice[];
  /** The work before the request can decode; empty while the request decodes. */
  prefills: Prefill[] = [];
  /** The tokens at the beginning of its prompt, or of its history, that were in a cache. */
  cached = 0;
  /** Index of the next record. */
  #next: number;

  constructor(order: number, request: NewGeneration, limits: GenerationLimits) {
    const { key, level, tenant, weight, sampling, prompt, next, replayed } = request;
    this.key = key;
    this.level = level;
    this.tenant = tenant;
    this.weight = weight;
    this.order = order;
    this.prompt = prompt;
    this.#next = next;
    this.choices = Array.from({ length: sampling.choices }, (_, choice) => {
      const made = new Choice({ spec: sampling, choice, promptTokens: prompt, ...limits });
      made.replay(replayed[choice]?.tokens ?? []);
      return made;
    });
    this.restart();
  }

  /**
   * Whether the request had tokens on its arrival or at the loss of its caches. Its reader waits in
   * the middle of the stream.
   */
  get interrupted(): boolean {
    return this.choices.some(({ tokens }) => tokens.length > 0);
  }

  /** Choices that have not finished. */
  get live(): Choice[] {
    return this.choices.filter(({ finished }) => finished === undefined);
  }

  /**
   * Plans the computation of all caches: for a new request, or after the engine has freed the
   * caches.
   */
  restart(): void {
    const byTokens = new Map<string, { choices: Choice[]; tokens: Int32Array }>();
    for (const choice of this.live) {
      const name = choice.tokens.join();
      const same = byTokens.get(name);
      if (same === undefined) byTokens.set(name, { choices: [choice], tokens: this.tokensOf(choice) });
      else same.choices.push(choice);
    }
    this.prefills = [...byTokens.values()].map((one) => ({ ...one, block: undefined, done: 0, logits: undefined }));
  }

  /** Prompt and output so far of one choice. */
  tokensOf(choice: Choice): Int32Array {
    const tokens = new Int32Array(this.prompt.length + choice.tokens.length);
    tokens.set(this.prompt);
    tokens.set(choice.tokens, this.prompt.length);
    return tokens;
  }

  /**
   * Makes the next record.
   * @param deltas one per choice that was unfinished before, in any order
   */
  step(deltas: readonly ChoiceDelta[]): Step {
    const final = this.live.length === 0;
    const index = this.#next++;
    const choices = [...deltas].sort((a, b) => a.index - b.index);
    const record: TokenRecord = final
      ? { index, choices, final, reason: "finished", usage: this.#usage() }
      : { index, choices };
    const [first] = this.choices;
    const history = final && first !== undefined ? this.tokensOf(first) : undefined;
    return {
      key: this.key,
      index,
      record: JSON.stringify(record),
      final,
      history,
      tokens: choices.reduce((sum, { tokens }) => sum + tokens.length, 0),
      cached: index === 0 ? this.cached : 0,
      finish: final ? first?.finished : undefined,
    };
  }

  #usage() {
    const completion = this.choices.reduce((sum, { tokens }) => sum + tokens.length, 0);
    return { prompt_tokens: this.prompt.length, completion_tokens: completion };
  }
}
