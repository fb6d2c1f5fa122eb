import { describe, expect, it } from "vitest";
import { tokenRecord, type ChoiceDelta, type SamplingSpec } from "#shared/contract/generation.js";
import { Choice } from "./choice.js";
import { uniform } from "./sampling/random.js";
import type { TextOf } from "./text/text.js";
import { greedy } from "../../test/fixtures/sampling.js";

/** The text of each token; the first two tokens are special and have no text. */
const vocabulary = [
  "<eos>",
  "<pad>",
  "a",
  "b",
  "ab",
  " c",
  "é",
  "\n",
  ...[0xf0, 0x9f, 0x98, 0x80, 0xff].map((byte) => [byte]),
];
const pieces = vocabulary.map((piece) => Buffer.from(piece));
const EOS = 0;
const [A, B, AB, C] = [2, 3, 4, 5];
const EMOJI = [8, 9, 10, 11];

const text: TextOf = {
  decode: (tokens) => Buffer.concat(tokens.filter((id) => id > 1).map((id) => pieces[id] ?? Buffer.of())).toString(),
  bytesOf: (token) => pieces[token] ?? new Uint8Array(),
};
const inBytes: TextOf = { ...text, shownBytes: (id) => (id > 1 ? text.bytesOf(id) : new Uint8Array()) };

function choiceOf(
  spec: Partial<SamplingSpec>,
  promptTokens: number[] = [A],
  contextLength = 100,
  choice = 0,
  from = text,
): Choice {
  return new Choice({ spec: { ...greedy, ...spec }, choice, promptTokens, text: from, eos: [EOS], contextLength });
}

/** @returns logits that make one token certain, and another token the second likeliest */
function wanting(token: number, second = 1): Float32Array {
  return Float32Array.from(vocabulary, (_, id) => (id === token ? 20 : id === second ? 10 : 0));
}

/** Advances by each token in turn until the choice ends. */
function made(choice: Choice, tokens: readonly number[]): ChoiceDelta[] {
  const deltas: ChoiceDelta[] = [];
  for (const token of tokens) if (choice.finished === undefined) deltas.push(choice.advance(wanting(token)));
  return deltas;
}

/** @returns the texts of all deltas joined by `|`, then the finish reason of the choice */
function said(
  spec: Partial<SamplingSpec>,
  tokens: readonly number[],
  prompt?: number[],
  contextLength?: number,
): string {
  const choice = choiceOf(spec, prompt, contextLength);
  const deltas = made(choice, tokens);
  expect(deltas.at(-1)?.finish_reason).toBe(choice.finished);
  expect(deltas.slice(0, -1).every((delta) => !("finish_reason" in delta))).toBe(true);
  expect(deltas.map((delta) => delta.tokens)).toEqual(choice.tokens.map((token) => [token]));
  return `${deltas.map((delta) => delta.text).join("|")} ${choice.finished ?? "goes on"}`;
}

describe("Choice", () => {
  it.each<[what: string, said: string, spec: Partial<SamplingSpec>, tokens: number[]]>([
    ["goes on while nothing ends it", "a|b goes on", {}, [A, B]],
    ["ends at the end of the text, which gives none", "a| stop", {}, [A, EOS, B]],
    [
      "gives at its end the bytes of a character that was not finished",
      "a|||\ufffd stop",
      {},
      [A, ...EMOJI.slice(0, 2), EOS],
    ],
    ["gives an emoji whole", "|||😀|a goes on", {}, [...EMOJI, A]],
    ["goes on after an end that is ignored", "a||b goes on", { ignoreEos: true }, [A, EOS, B]],
    ["ends at a stop token, which gives no text", "a| stop", { stopTokens: [B] }, [A, B]],
    ["ends at a stop token that is an ignored end", "a| stop", { ignoreEos: true, stopTokens: [EOS] }, [A, EOS]],
    ["ends before a stop string", "a| stop", { stop: ["b"] }, [A, B]],
    ["ends within a token, at its stop string", "b|a stop", { stop: ["b"], minTokens: 1 }, [B, AB]],
    ["holds back what may begin a stop string", "|a| stop", { stop: ["ab c"] }, [A, AB, C]],
    ["gives what was held back when the text ends", "|a stop", { stop: ["abc"] }, [A, EOS]],
    ["gives what was held back when its length ends it", "|ab length", { stop: ["abc"], maxTokens: 2 }, [A, B]],
    ["ends at maxTokens", "a|b length", { maxTokens: 2 }, [A, B]],
    ["ends for the text's sake rather than for length", "a| stop", { maxTokens: 2 }, [A, EOS]],
    ["ends for a stop string's sake rather than for length", "a| stop", { maxTokens: 2, stop: ["b"] }, [A, B]],
    ["gives at its length the bytes of a character that was not finished", "a|\ufffd length", { maxTokens: 2 }, [A, 8]],
    ["ends at a stop string in the bytes left at its length", "a| stop", { maxTokens: 2, stop: ["\ufffd"] }, [A, 8]],
    ["takes a stop string below minTokens for text", "b|b| stop", { stop: ["b"], minTokens: 2 }, [B, B, B]],
    ["ends at a stop string that began below minTokens", "| stop", { stop: ["ab"], minTokens: 1 }, [A, B]],
    ["ends at no stop token below minTokens", "| stop", { stopTokens: [B], minTokens: 1 }, [B, B]],
  ])("%s", (_what, expected, spec, tokens) => {
    expect(said(spec, tokens)).toBe(expected);
  });

  it("ends when prompt and output fill the context", () => {
    expect(said({}, [A, B, A], [A, A], 4)).toBe("a|b length");
    expect(said({ maxTokens: 1 }, [A, B, A], [A, A], 4)).toBe("a length");
    expect(said({}, [A, B], [A, A, A, A], 4)).toBe("a length");
  });

  it("counts prompt and output in its penalties", () => {
    const choice = choiceOf({ repetitionPenalty: 3 }, [A]);
    expect(choice.advance(wanting(A, B)).tokens).toEqual([B]);
    expect(choice.advance(wanting(B, C)).tokens).toEqual([C]);
  });

  it("refuses to go on after its end, and changes nothing when the model gave nothing", () => {
    const choice = choiceOf({ maxTokens: 1 });
    expect(() => choice.advance(Float32Array.of(NaN))).toThrow("no usable logits");
    expect(choice.tokens).toEqual([]);
    choice.advance(wanting(A));
    expect(() => choice.advance(wanting(A))).toThrow("has ended");
    expect(choice.tokens).toEqual([A]);
  });

  it("reports log probabilities with each token's own text and bytes", () => {
    const [delta] = made(choiceOf({ logprobs: 2 }, [A], 100, 3), [8]);
    expect(delta?.index).toBe(3);
    expect(delta?.logprobs).toEqual([
      {
        id: 8,
        token: "\ufffd",
        bytes: [0xf0],
        logprob: expect.closeTo(0, 3),
        top: [
          { id: 8, token: "\ufffd", bytes: [0xf0], logprob: expect.closeTo(0, 3) },
          { id: 1, token: "<pad>", bytes: [...Buffer.from("<pad>")], logprob: expect.closeTo(-10, 3) },
        ],
      },
    ]);
  });

  it("draws apart from the request's other choices", () => {
    const flat = new Float32Array(vocabulary.length);
    const texts = [0, 1, 2].map((choice) => {
      const one = choiceOf({ temperature: 1, ignoreEos: true, maxTokens: 20 }, [A], 100, choice);
      while (one.finished === undefined) one.advance(flat);
      return one.tokens.join();
    });
    expect(new Set(texts).size).toBe(3);
  });
});

describe("a choice that another worker takes over", () => {
  /** A model whose logits depend on the tokens so far, and that likes to finish an emoji. */
  function logitsAfter(round: number, tokens: readonly number[]): Float32Array {
    let hash = round;
    for (const token of tokens) hash = (Math.imul(hash, 31) + token) >>> 0;
    const next = EMOJI[EMOJI.indexOf(tokens.at(-1) ?? -1) + 1];
    const bonus = (id: number): number => (id === EOS ? -3 : id === next ? 4 : 0);
    return Float32Array.from(vocabulary, (_, id) => 4 * uniform(hash, 9, id) + bonus(id));
  }

  function run(choice: Choice, round: number): ChoiceDelta[] {
    const deltas: ChoiceDelta[] = [];
    while (choice.finished === undefined) deltas.push(choice.advance(logitsAfter(round, choice.tokens)));
    return deltas;
  }

  const stops = ["a\n", "😀a", "ab c", "bb", "c\n\n", "\ufffd", "ééé"];

  it.each<[TextOf, string]>([
    [text, "any tokenizer's text"],
    [inBytes, "text that is the tokens' bytes"],
  ])("goes on from any token with the very deltas of one that was never interrupted: $1", (from) => {
    const endings = new Set<string | undefined>();
    let emojis = 0;
    for (let round = 0; round < 250; round++) {
      const at = (draw: number): number => uniform(5, round, draw);
      const spec: Partial<SamplingSpec> = {
        temperature: at(0) < 0.2 ? 0 : 0.5 + 3 * at(1),
        topP: at(2) < 0.5 ? 1 : 0.9,
        topK: at(3) < 0.5 ? 0 : 6,
        repetitionPenalty: at(4) < 0.5 ? 1 : 1.2,
        frequencyPenalty: at(5) < 0.5 ? 0 : 0.3,
        logitBias: EMOJI.map((id) => [id, 1]),
        seed: round,
        logprobs: at(6) < 0.8 ? null : 2,
        stop: stops.filter((_, i) => at(10 + i) < 0.4),
        stopTokens: at(7) < 0.8 ? [] : [7],
        ignoreEos: at(8) < 0.3,
        minTokens: Math.floor(at(9) * 8),
        maxTokens: 40,
      };
      const begin = () => choiceOf(spec, [A, 8], 35 + Math.floor(at(20) * 10), 0, from);
      const whole = begin();
      const deltas = run(whole, round);
      endings.add(whole.finished);
      const full = deltas.map((delta) => delta.text).join("");
      if (full.includes("😀")) emojis++;
      expect(tokenRecord.shape.choices.parse(deltas)).toEqual(deltas);
      for (const stop of spec.stop ?? []) if (spec.minTokens === 0) expect(full).not.toContain(stop);
      const cuts = Array.from({ length: 6 }, (_, i) => Math.floor(at(30 + i) * (deltas.length + 1)));
      for (const cut of [0, deltas.length, ...cuts]) {
        const other = begin();
        other.replay(whole.tokens.slice(0, cut));
        expect(other.finished).toBe(cut === deltas.length ? whole.finished : undefined);
        expect(run(other, round), JSON.stringify({ round, cut, ...spec })).toEqual(deltas.slice(cut));
        expect(other.tokens).toEqual(whole.tokens);
      }
    }
    expect(endings).toEqual(new Set(["stop", "length"]));
    expect(emojis).toBeGreaterThan(50);
  });
});
