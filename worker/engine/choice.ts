/**
 * One choice of one request, from logits to the client's text. The whole state follows from the
 * request and the tokens so far. A worker that takes the request over replays the logged tokens and
 * continues as if it had drawn them.
 */
import type { ChoiceDelta, SamplingSpec, TokenChance, TokenLogprob } from "#shared/contract/generation.js";
import type { Chance } from "./sampling/logprobs.js";
import { penalises, TokenCounts } from "./sampling/penalties.js";
import { sample, type Sampled } from "./sampling/sampler.js";
import { StopStrings } from "./text/stop.js";
import { growingText, type GrowingText, type TextOf } from "./text/text.js";

export interface ChoiceOptions {
  readonly spec: SamplingSpec;
  /** The index of the choice in the request, from 0. */
  readonly choice: number;
  readonly promptTokens: ArrayLike<number>;
  readonly text: TextOf;
  readonly eos: readonly number[];
  /** Most tokens of prompt and output together. */
  readonly contextLength: number;
}

type Finish = "stop" | "length";

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

export class Choice {
  /** Ids of all tokens drawn so far. */
  readonly tokens: number[] = [];
  private readonly options: ChoiceOptions;
  /** Most tokens of the output. */
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

  /** The reason for the end; undefined until the choice ends. */
  get finished(): Finish | undefined {
    return this.finish;
  }

  /**
   * Draws the next token.
   * @param logits one per token of the vocabulary, for the position after the last token; unchanged
   *   by the call
   * @throws Error if the model gave no usable logits; the choice is then unchanged
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

  /**
   * Takes tokens from the log. Another worker drew these tokens and has already sent their text.
   */
  replay(tokens: readonly number[]): void {
    const { spec, eos } = this.options;
    // Only the last token can have ended the choice. Of the earlier text only the end matters,
    // unless a stop string may have begun there.
    const before = this.stops.none ? tokens.slice(0, -1) : [];
    for (const token of before) {
      this.tokens.push(token);
      if (penalises(spec)) this.counts.add(token);
    }
    this.text.skip(before.filter((token) => !eos.includes(token)));
    for (const token of tokens.slice(before.length)) this.accept(token);
  }

  /**
   * @returns the text that the token makes certain; at the end, also all text that was held back
   */
  private accept(token: number): string {
    const { spec, eos } = this.options;
    this.tokens.push(token);
    if (penalises(spec)) this.counts.add(token);
    const honoured = this.tokens.length > spec.minTokens;
    const isEos = eos.includes(token);
    const ends = honoured && ((isEos && !spec.ignoreEos) || spec.stopTokens.includes(token));
    // A token that ends the text is no part of the text, even if the request ignores such ends.
    const silent = ends || isEos;
    const { text, stopped } = this.stops.push(silent ? "" : this.text.push(token), honoured);
    if (stopped || ends) this.finish = "stop";
    else if (this.tokens.length >= this.most) this.finish = "length";
    return this.finish === undefined || stopped ? text : text + this.rest(honoured);
  }

  /** @returns the held text, cut at a stop string that ends in this text */
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
