import { describe, expect, it } from "vitest";
import type { SamplingSpec } from "#shared/contract/generation.js";
import { sample } from "./sampler.js";
import { TokenCounts } from "./penalties.js";
import { greedy } from "../../../test/fixtures/sampling.js";

interface Given extends Partial<SamplingSpec> {
  prompt?: number[];
  output?: number[];
  eos?: number[];
}

function sampled(logits: readonly number[], { prompt = [], output = [], eos = [], ...spec }: Given = {}, choice = 0) {
  const counts = new TokenCounts(prompt, output);
  return sample(Float32Array.from(logits), counts, { ...greedy, ...spec }, choice, output.length, { eos });
}

const token = (logits: readonly number[], given?: Given): number => sampled(logits, given).token;

describe("sample, greedy", () => {
  it.each<[what: string, expected: number, logits: number[], given: Given]>([
    ["the likeliest", 1, [1, 3, 2], {}],
    ["the lowest id of several likeliest", 1, [1, 3, 3], {}],
    ["among negative logits", 2, [-5, -3, -1], {}],
    ["no NaN", 2, [NaN, 1, 2, NaN], {}],
    ["Infinity", 1, [5, Infinity, Infinity], {}],
    ["by biased logits", 0, [1, 3], { logitBias: [[0, 2.5]] }],
    ["no token that a bias forbids", 0, [1, 3], { logitBias: [[1, -100]] }],
    ["as before when a bias names a token beyond the vocabulary", 1, [1, 3], { logitBias: [[2, 100]] }],
    ["by repetition: a positive logit is divided", 0, [2, 3], { repetitionPenalty: 2, output: [1] }],
    ["by repetition: a negative logit is multiplied", 0, [-3, -2], { repetitionPenalty: 2, output: [1] }],
    ["by repetition of the prompt", 0, [2, 3], { repetitionPenalty: 2, prompt: [1] }],
    ["by repetition that counts once, however often", 1, [1, 3], { repetitionPenalty: 2, output: [1, 1, 1, 1] }],
    ["repeated tokens where repetition is rewarded", 1, [3, 2], { repetitionPenalty: 0.5, output: [1] }],
    ["by presence in the output, once", 0, [2, 3], { presencePenalty: 1.5, output: [1] }],
    ["by presence that counts once, however often", 1, [2, 3], { presencePenalty: 0.5, output: [1, 1, 1] }],
    ["whatever stands in the prompt, as far as presence goes", 1, [2, 3], { presencePenalty: 2, prompt: [1] }],
    ["by frequency in the output, every time", 0, [2, 3], { frequencyPenalty: 0.5, output: [1, 1, 1] }],
    ["whatever stands in the prompt, as far as frequency goes", 1, [2, 3], { frequencyPenalty: 2, prompt: [1] }],
    ["by frequency after repetition", 1, [1.4, 4], { repetitionPenalty: 2, frequencyPenalty: 0.5, output: [1] }],
    ["by repetition of the biased logit", 0, [2, 1], { repetitionPenalty: 2, output: [1], logitBias: [[1, 2.5]] }],
    ["no end of the text below minTokens", 0, [1, 3], { eos: [1], minTokens: 1 }],
    [
      "no end of the text below minTokens, even if it would be ignored",
      0,
      [1, 3],
      { eos: [1], minTokens: 1, ignoreEos: true },
    ],
    ["no stop token below minTokens", 0, [1, 3], { stopTokens: [1], minTokens: 1 }],
    [
      "no stop token below minTokens, whatever its bias",
      0,
      [1, 3],
      { stopTokens: [1], minTokens: 1, logitBias: [[1, 9]] },
    ],
    ["the end of the text from minTokens on", 1, [1, 3], { eos: [1], minTokens: 2, output: [0, 0] }],
    ["as before when the end of the text is beyond the vocabulary", 1, [1, 3], { eos: [2], minTokens: 1 }],
  ])("takes %s", (_what, expected, logits, given) => {
    expect(token(logits, given)).toBe(expected);
  });

  it.each<[what: string, logits: number[], given: Given]>([
    ["all are NaN", [NaN, NaN], {}],
    ["all are -Infinity", [-Infinity, -Infinity], { temperature: 1 }],
    ["there are none", [], { temperature: 1 }],
    ["only the end is possible and it is too early", [-Infinity, 1], { eos: [1], minTokens: 1 }],
  ])("refuses logits when %s", (_what, logits, given) => {
    expect(() => token(logits, given)).toThrow("the model gave no usable logits");
  });

  it("leaves the row as it was, and remembers nothing of it", () => {
    const row = Float32Array.from([1, 3, 2]);
    const spec: SamplingSpec = { ...greedy, logitBias: [[1, -9]], minTokens: 1, stopTokens: [2] };
    expect(sample(row, new TokenCounts(), spec, 0, 0, { eos: [] }).token).toBe(0);
    expect([...row]).toEqual([1, 3, 2]);
    expect(sample(row, new TokenCounts(), greedy, 0, 0, { eos: [] }).token).toBe(1);
    expect(token([0, 1], { logitBias: [[0, 9]] })).toBe(0);
  });
});

describe("sample, random", () => {
  const logits = Array.from({ length: 50 }, (_, id) => Math.sin(id) * 2);
  const random = { temperature: 1, seed: 2 ** 53 - 1 };

  it("gives the same token for the same seed, choice and place", () => {
    expect(sampled(logits, random, 3)).toEqual(sampled(logits, random, 3));
  });

  it("follows the probabilities", () => {
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
    const count = 20_000;
    const seen = new Float64Array(logits.length);
    for (let choice = 0; choice < count; choice++) {
      const id = sampled(logits, random, choice).token;
      seen[id] = (seen[id] ?? 0) + 1;
    }
    const chiSquare = logits.reduce((sum, logit, id) => {
      const expected = (count * Math.exp(logit)) / total;
      return sum + ((seen[id] ?? 0) - expected) ** 2 / expected;
    }, 0);
    // 49 degrees of freedom: one random test in a thousand passes 85.
    expect(chiSquare).toBeLessThan(85);
  });

  it("becomes greedy as temperature nears zero", () => {
    expect(token(logits, { ...random, temperature: 1e-300 })).toBe(token(logits, { temperature: 0 }));
  });

  it("chooses among infinities alone", () => {
    const seen = new Set(
      Array.from({ length: 50 }, (_, seed) => token([1, Infinity, 2, Infinity], { ...random, seed })),
    );
    expect(seen).toEqual(new Set([1, 3]));
  });

  it("draws only what truncations leave, after penalties", () => {
    const given: Given = { ...random, topK: 2, repetitionPenalty: 10, output: [3] };
    const seen = new Set(Array.from({ length: 50 }, (_, seed) => token([1, 1.1, 1.2, 5], { ...given, seed })));
    expect(seen).toEqual(new Set([1, 2]));
  });

  it("never draws an end of the text below minTokens", () => {
    const given: Given = { ...random, eos: [0], stopTokens: [1], minTokens: 1 };
    const seen = new Set(Array.from({ length: 50 }, (_, seed) => token([9, 9, 0, 0], { ...given, seed })));
    expect(seen).toEqual(new Set([2, 3]));
  });
});

describe("sample's log probabilities", () => {
  const logits = [0.5, 0.125, 0.25, 0.125].map(Math.log);

  it("are left out unless asked for", () => {
    expect(sampled(logits)).toEqual({ token: 0 });
  });

  it("are those of the model, whatever was done to the logits", () => {
    const { token, logprobs } = sampled(logits, { logprobs: 0, temperature: 2, topK: 1, logitBias: [[1, 50]] });
    expect(token).toBe(1);
    expect(logprobs?.logprob).toBeCloseTo(Math.log(0.125), 6);
    expect(logprobs?.top).toEqual([]);
  });

  it("list the likeliest first, the lower id first among equals", () => {
    const top = sampled(logits, { logprobs: 3 }).logprobs?.top ?? [];
    expect(top.map(({ id }) => id)).toEqual([0, 2, 1]);
    expect(top.map(({ logprob }) => Math.exp(logprob))).toEqual([0.5, 0.25, 0.125].map((p) => expect.closeTo(p, 6)));
  });

  it("agree with a full sort", () => {
    const row = Array.from({ length: 1000 }, (_, id) => Math.fround(Math.round(20 * Math.sin(id * id)) / 4));
    const top = sampled(row, { logprobs: 20 }).logprobs?.top ?? [];
    const sorted = row.map((logit, id) => ({ logit, id })).sort((a, b) => b.logit - a.logit || a.id - b.id);
    expect(top.map(({ id }) => id)).toEqual(sorted.slice(0, 20).map(({ id }) => id));
  });

  it("are all there are when more are asked for, without the impossible", () => {
    const top = sampled([1, NaN, -Infinity, 2], { logprobs: 9 }).logprobs?.top ?? [];
    expect(top.map(({ id }) => id)).toEqual([3, 0]);
  });

  it("stay numbers for what is impossible or certain", () => {
    const certain = sampled([1, Infinity, 2, Infinity], { logprobs: 4 }).logprobs;
    expect(certain?.logprob).toBeCloseTo(Math.log(0.5));
    expect(certain?.top.map(({ logprob }) => logprob)).toEqual([certain?.logprob, certain?.logprob, -9999, -9999]);
    expect(sampled([0, -20_000], { logprobs: 0, logitBias: [[1, 30_000]] }).logprobs?.logprob).toBe(-9999);
  });

  it("do not overflow", () => {
    expect(sampled([3e38, 0], { logprobs: 0 }).logprobs?.logprob).toBe(0);
  });
});
