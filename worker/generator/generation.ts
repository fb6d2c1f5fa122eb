/** One request in the engine: its choices advance in step, so that record i holds everybody's token i. */
import type { ChoiceDelta, TokenRecord } from "#shared/contract/generation.js";
import { Choice } from "./choice.js";
import type { KvBlock } from "./kv.js";
import type { NewGeneration, Step } from "./protocol.js";
import type { TextOf } from "./text.js";

/** Forward passes that some choices wait for: their tokens are alike, so one cache serves them all at first. */
export interface Prefill {
  readonly choices: readonly Choice[];
  readonly tokens: Int32Array;
  /** One row; undefined until it begins. */
  block: KvBlock | undefined;
  /** Positions computed. */
  done: number;
  /** After the last token, once all are computed. */
  logits: Float32Array | undefined;
}

export interface GenerationLimits {
  readonly text: TextOf;
  readonly eos: readonly number[];
  readonly contextLength: number;
}

export class Generation {
  readonly key: string;
  /** Arrival in this engine; smaller is older. */
  readonly order: number;
  readonly prompt: Int32Array;
  readonly choices: readonly Choice[];
  /** Empty while it decodes. */
  prefills: Prefill[] = [];
  #next: number;

  constructor(order: number, { key, sampling, prompt, next, replayed }: NewGeneration, limits: GenerationLimits) {
    this.key = key;
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

  /** Tokens were read of it before it came here, or before its caches were given up. */
  get interrupted(): boolean {
    return this.choices.some(({ tokens }) => tokens.length > 0);
  }

  get live(): Choice[] {
    return this.choices.filter(({ finished }) => finished === undefined);
  }

  /** Everything must be computed again: it is new here, or its caches were given up. */
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

  /** Prompt and output. */
  tokensOf(choice: Choice): Int32Array {
    const tokens = new Int32Array(this.prompt.length + choice.tokens.length);
    tokens.set(this.prompt);
    tokens.set(choice.tokens, this.prompt.length);
    return tokens;
  }

  /** @param deltas one per choice that was live. */
  step(deltas: readonly ChoiceDelta[]): Step {
    const final = this.live.length === 0;
    const index = this.#next++;
    const choices = [...deltas].sort((a, b) => a.index - b.index);
    const record: TokenRecord = final
      ? { index, choices, final, reason: "finished", usage: this.#usage() }
      : { index, choices };
    const [first] = this.choices;
    const history = final && first !== undefined ? this.tokensOf(first) : undefined;
    return { key: this.key, index, record: JSON.stringify(record), final, history };
  }

  #usage() {
    const completion = this.choices.reduce((sum, { tokens }) => sum + tokens.length, 0);
    return { prompt_tokens: this.prompt.length, completion_tokens: completion };
  }
}
