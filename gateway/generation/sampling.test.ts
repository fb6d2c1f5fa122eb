/** The sampling parameters that a client may send, and the refusal of all other parameters. */
import { describe, expect, it } from "vitest";
import { samplingSpec } from "#shared/contract/generation.js";
import type { JsonObject } from "#shared/json/parse.js";
import { ParameterError } from "./parameters.js";
import { readSampling, type GeneratorInfo } from "./sampling.js";

const generator: GeneratorInfo = {
  contextLength: 2048,
  vocabSize: 1000,
  chat: true,
  maxChoices: 8,
  maxIdleMs: 1000,
  defaults: {},
};
const nothingChosen = { logprobs: null, maxTokens: null, idempotencyKey: undefined };

const read = (body: JsonObject, model = generator) => readSampling(body, model, nothingChosen);

function refusal(body: JsonObject): object {
  try {
    read(body);
  } catch (error) {
    if (error instanceof ParameterError)
      return { code: error.code, parameter: error.parameter, message: error.message };
    throw error;
  }
  return {};
}

const bias = (entries: number): JsonObject => Object.fromEntries(Array.from({ length: entries }, (_, id) => [id, 1]));

describe("what is refused", () => {
  const limits = "a number from -2 to 2";
  // prettier-ignore
  const cases: [parameter: string, body: JsonObject, message: string][] = [
    ["temperature", { temperature: -0.1 }, "temperature must be a number from 0 to 100, got -0.1"],
    ["temperature", { temperature: 100.5 }, "temperature must be a number from 0 to 100, got 100.5"],
    ["temperature", { temperature: Number.NaN }, "temperature must be a number from 0 to 100, got NaN"],
    ["temperature", { temperature: Number.POSITIVE_INFINITY }, "temperature must be a number from 0 to 100, got Infinity"],
    ["temperature", { temperature: "hot" }, 'temperature must be a number from 0 to 100, got "hot"'],
    ["temperature", { temperature: 10n ** 20n }, "temperature must be a number from 0 to 100, got 100000000000000000000"],
    ["top_p", { top_p: 0 }, "top_p must be a number above 0 and at most 1, got 0"],
    ["top_p", { top_p: 1.01 }, "top_p must be a number above 0 and at most 1, got 1.01"],
    ["top_k", { top_k: -2 }, "top_k must be a whole number from -1 to 9007199254740991, got -2"],
    ["top_k", { top_k: 1.5 }, "top_k must be a whole number from -1 to 9007199254740991, got 1.5"],
    ["min_p", { min_p: 1.5 }, "min_p must be a number from 0 to 1, got 1.5"],
    ["repetition_penalty", { repetition_penalty: 0 }, "repetition_penalty must be a number above 0 and at most 10, got 0"],
    ["repetition_penalty", { repetition_penalty: 11 }, "repetition_penalty must be a number above 0 and at most 10, got 11"],
    ["presence_penalty", { presence_penalty: 2.1 }, `presence_penalty must be ${limits}, got 2.1`],
    ["frequency_penalty", { frequency_penalty: -3 }, `frequency_penalty must be ${limits}, got -3`],
    ["n", { n: 0 }, "n must be a whole number from 1 to 8, got 0"],
    ["n", { n: 1_000_000 }, "n must be a whole number from 1 to 8, got 1000000"],
    ["best_of", { n: 2, best_of: 3 }, "best_of must be the same as n, which is 2, got 3"],
    ["max_tokens", { max_tokens: 1_000_000_000 }, "max_tokens must be a whole number from 1 to 2048, got 1000000000"],
    ["max_tokens", { max_tokens: 0 }, "max_tokens must be a whole number from 1 to 2048, got 0"],
    ["max_tokens", { max_tokens: 2n ** 64n }, "max_tokens must be a whole number from 1 to 2048, got 18446744073709551616"],
    ["max_completion_tokens", { max_completion_tokens: 4096 }, "max_completion_tokens must be a whole number from 1 to 2048, got 4096"],
    ["min_tokens", { min_tokens: 6, max_tokens: 5 }, "min_tokens must be at most max_tokens, which is 5, got 6"],
    ["min_tokens", { min_tokens: 2049 }, "min_tokens must be at most max_tokens, which is 2048, got 2049"],
    ["seed", { seed: 1.5 }, "seed must be a whole number, got 1.5"],
    ["seed", { seed: "1" }, 'seed must be a whole number, got "1"'],
    ["stop", { stop: Array.from({ length: 100_000 }, () => "x") }, "stop has 100000 strings, more than the limit of 16"],
    ["stop", { stop: "x".repeat(257) }, "stop has a string of 257 characters, more than the limit of 256"],
    ["stop", { stop: ["a", ""] }, "stop must not hold an empty string"],
    ["stop", { stop: [1] }, "stop must be a string or a list of strings, got 1"],
    ["stop_token_ids", { stop_token_ids: Array.from({ length: 65 }, () => 1) }, "stop_token_ids has 65 ids, more than the limit of 64"],
    ["stop_token_ids", { stop_token_ids: [1000] }, "stop_token_ids must hold token ids of the vocabulary, from 0 to 999, got 1000"],
    ["stop_token_ids", { stop_token_ids: 7 }, "stop_token_ids must be a list of token ids, got 7"],
    ["logit_bias", { logit_bias: bias(1_000_000) }, "logit_bias has 1000000 entries, more than the limit of 1024"],
    ["logit_bias", { logit_bias: { 1000: 1 } }, 'logit_bias must name token ids of the vocabulary, from 0 to 999, got "1000"'],
    ["logit_bias", { logit_bias: { "07": 1 } }, 'logit_bias must name token ids of the vocabulary, from 0 to 999, got "07"'],
    ["logit_bias", { logit_bias: { 7: 101 } }, "logit_bias of token 7 must be a number from -100 to 100, got 101"],
    ["logit_bias", { logit_bias: { 7: null } }, "logit_bias of token 7 must be a number from -100 to 100, got null"],
    ["logit_bias", { logit_bias: [1] }, "logit_bias must be an object of token ids and numbers, got a list of 1"],
    ["ignore_eos", { ignore_eos: 1 }, "ignore_eos must be true or false, got 1"],
  ];
  it.each(cases)("%s: %#", (parameter, body, message) => {
    expect(refusal(body)).toMatchObject({ code: "invalid_argument", parameter, message });
  });
});

describe("what is accepted", () => {
  it("has the protocols' defaults where nobody says anything", () => {
    const { seed, ...spec } = read({});
    expect(spec).toEqual({
      temperature: 1,
      topK: 0,
      topP: 1,
      minP: 0,
      repetitionPenalty: 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      logitBias: [],
      choices: 1,
      logprobs: null,
      stop: [],
      stopTokens: [],
      ignoreEos: false,
      minTokens: 0,
      maxTokens: null,
    });
    expect(seed).not.toBe(read({}).seed);
  });

  it("prefers the model's defaults to those, and the client's values to all", () => {
    const defaults = { temperature: 0.5, topK: 40, topP: 0.9, minP: 0.1, repetitionPenalty: 1.1, maxTokens: 100 };
    const tuned = { ...generator, defaults };
    expect(read({}, tuned)).toMatchObject(defaults);
    expect(read({ temperature: null, max_tokens: null }, tuned)).toMatchObject(defaults);
    const asked = { temperature: 0, top_k: -1, top_p: 1, min_p: 0, repetition_penalty: 1, max_tokens: 7 };
    expect(read(asked, tuned)).toMatchObject({
      temperature: 0,
      topK: 0,
      topP: 1,
      minP: 0,
      repetitionPenalty: 1,
      maxTokens: 7,
    });
    expect(read({}, { ...generator, defaults: { maxTokens: 10_000 } }).maxTokens).toBe(2048);
  });

  it("passes the queue's own schema at every limit", () => {
    const spec = read({
      temperature: 100,
      top_p: 1e-9,
      top_k: 999,
      min_p: 1,
      repetition_penalty: 10,
      presence_penalty: -2,
      frequency_penalty: 2,
      n: 8,
      best_of: 8,
      max_tokens: 2048,
      min_tokens: 2048,
      stop: Array.from({ length: 16 }, () => "x".repeat(256)),
      stop_token_ids: [0, 999],
      logit_bias: { 0: -100, 999: 100 },
      ignore_eos: true,
    });
    expect(samplingSpec.parse(spec)).toEqual(spec);
    const logitBias = [
      [0, -100],
      [999, 100],
    ];
    expect(spec).toMatchObject({ topK: 999, logitBias, stopTokens: [0, 999] });
  });

  it("counts a top_k of the whole vocabulary as none, and one string as a list", () => {
    expect(read({ top_k: 1000, stop: "x" })).toMatchObject({ topK: 0, stop: ["x"] });
  });

  it("takes max_completion_tokens before max_tokens", () => {
    expect(read({ max_tokens: 5, max_completion_tokens: 6 }).maxTokens).toBe(6);
  });
});

describe("log probabilities", () => {
  const wide = { ...generator, maxChoices: 128 };
  const readWide = (n: number, logprobs: number | null) =>
    readSampling({ n }, wide, { ...nothingChosen, logprobs }).choices;

  it.each([
    [128, null],
    [128, 1],
    [12, 20],
  ])("of %d choices with %s alternatives are taken", (n, logprobs) => {
    expect(readWide(n, logprobs)).toBe(n);
  });

  it.each([
    [128, 2, 384],
    [13, 20, 273],
  ])("of %d choices with %d alternatives are too many for a record", (n, logprobs, all) => {
    const message = `n of ${n} with ${logprobs} alternatives beside each token makes ${all} log probabilities a step, more than the limit of 256`;
    expect(() => readWide(n, logprobs)).toThrow(
      expect.objectContaining({ code: "invalid_argument", parameter: "n", message }),
    );
  });
});

describe("a seed", () => {
  const seeds = [0, 7, 2 ** 53 - 1, 2n ** 53n, 2n ** 63n - 1n, -1, -7, -(2n ** 63n), 2n ** 64n + 7n, 1e20];

  it("of any whole number is one below 2^53, and its own", () => {
    const mapped = seeds.map((seed) => read({ seed }).seed);
    expect(mapped.slice(0, 3)).toEqual([0, 7, 2 ** 53 - 1]);
    expect(new Set(mapped).size).toBe(seeds.length);
    for (const seed of mapped) expect(Number.isSafeInteger(seed) && seed >= 0).toBe(true);
    expect(seeds.map((seed) => read({ seed }).seed)).toEqual(mapped);
  });

  it("that is drawn under an Idempotency-Key is drawn alike for a retry", () => {
    const drawn = (idempotencyKey: string): number =>
      readSampling({}, generator, { ...nothingChosen, idempotencyKey }).seed;
    expect(drawn("a")).toBe(drawn("a"));
    expect(drawn("a")).not.toBe(drawn("b"));
  });
});
