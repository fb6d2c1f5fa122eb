/**
 * One choice of one request, from logits to the text that its client reads. All that it holds
 * follows from the request and the tokens so far, so a worker that takes the request over replays
 * the logged tokens and goes on as if it had drawn them.
 */
import type { ChoiceDelta, SamplingSpec, TokenChance, TokenLogprob } from "#shared/contract/generation.js";
import type { Chance } from "./sampling/logprobs.js";
import { penalises, TokenCounts } from "./sampling/penalties.js";
import { sample, type Sampled } from "./sampling/sampler.js";
import { StopStrings } from "./text/stop.js";
import { growingText, type GrowingText, type TextOf } from "./text/text.js";

export interface ChoiceOptions {
  readonly spec: SamplingSpec;
  /** Which of the request's choices, from 0. */
  readonly choice: number;
  readonly promptTokens: ArrayLike<number>;
  readonly text: TextOf;
  readonly eos: readonly number[];
  /** How many tokens prompt and output may have together. */
  readonly contextLength: number;
}

type Finish = "stop" | "length";

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

export class Choice {
  /** Ids of all tokens drawn so far. */
  readonly tokens: number[] = [];
  private readonly options: ChoiceOptions;
  /** How many tokens the output may have. */
  private readonly most: number;
  private readonly counts: TokenCounts;
  private readonly text: GrowingText;
  private readonly stops: StopStrings;
  private finish: Finish | undefined;

  constructor(options: ChoiceOptions) {
    const { spec, promptTokens, text, contextLength } = options;
    this.options = options;
    this.most = Math.min(spec.maxTokens ?? Infinity, contextLength - promptTokens.length);
    this.counts = new TokenCounts(penalises(spec) ? promptTokens : []);
    this.text = growingText(text, promptTokens);
    this.stops = new StopStrings(spec.stop);
  }

  /** Why it has ended, if it has. */
  get finished(): Finish | undefined {
    return this.finish;
  }

  /**
   * Draws the next token.
   * @param logits one per token of the vocabulary, for the position after the last token; left as
   * they are
   * @throws Error when the model gave no usable logits; the choice is as it was then
   */
  advance(logits: Float32Array): ChoiceDelta {
    const { spec, choice } = this.options;
    if (this.finish !== undefined) throw new Error("the choice has ended");
    const sampled = sample(logits, this.counts, spec, choice, this.tokens.length, this.options);
    const delta: ChoiceDelta = { index: choice, text: this.accept(sampled.token), tokens: [sampled.token] };
    if (sampled.logprobs !== undefined) delta.logprobs = [this.logprob(sampled.token, sampled.logprobs)];
    if (this.finish !== undefined) delta.finish_reason = this.finish;
    return delta;
  }

  /** Takes tokens from the log, which another worker drew and whose text is out already. */
  replay(tokens: readonly number[]): void {
    const { spec, eos } = this.options;
    // Only the last token may have ended the choice. Of the text before it nothing but the end
    // matters, unless a stop string may have begun there.
    const before = this.stops.none ? tokens.slice(0, -1) : [];
    for (const token of before) {
      this.tokens.push(token);
      if (penalises(spec)) this.counts.add(token);
    }
    this.text.skip(before.filter((token) => !eos.includes(token)));
    for (const token of tokens.slice(before.length)) this.accept(token);
  }

  /** @returns the text that the token makes certain; at the end, all that was held back. */
  private accept(token: number): string {
    const { spec, eos } = this.options;
    this.tokens.push(token);
    if (penalises(spec)) this.counts.add(token);
    const honoured = this.tokens.length > spec.minTokens;
    const isEos = eos.includes(token);
    const ends = honoured && ((isEos && !spec.ignoreEos) || spec.stopTokens.includes(token));
    // A token that ends the text is no part of it, even where its end is ignored.
    const silent = ends || isEos;
    const { text, stopped } = this.stops.push(silent ? "" : this.text.push(token), honoured);
    if (stopped || ends) this.finish = "stop";
    else if (this.tokens.length >= this.most) this.finish = "length";
    return this.finish === undefined || stopped ? text : text + this.rest(honoured);
  }

  /** @returns the text that was held back until now, cut at a stop string that it completes */
  private rest(honoured: boolean): string {
    const { text, stopped } = this.stops.push(this.text.flush(), honoured);
    if (stopped) this.finish = "stop";
    return text + this.stops.flush();
  }

  private logprob(token: number, { logprob, top }: NonNullable<Sampled["logprobs"]>): TokenLogprob {
    return { ...this.chance({ id: token, logprob }), top: top.map((one) => this.chance(one)) };
  }

  private chance({ id, logprob }: Chance): TokenChance {
    const bytes = this.options.text.bytesOf(id);
    return { id, token: utf8.decode(bytes), bytes: [...bytes], logprob };
  }
}
