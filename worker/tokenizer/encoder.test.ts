import { Tokenizer } from "@huggingface/tokenizers";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../test/support/fleet/random.js";
import { root } from "../../test/support/fleet/root.js";
import { byteLevel, sentencePiece, unigram, type Json } from "../../test/fixtures/tokenizers.js";
import { controlTokens } from "./control-tokens.js";
import { Encoder } from "./encoder.js";
import { tokenizerJson } from "./schema.js";

function open(raw: Json): Encoder {
  const json = tokenizerJson.parse(raw);
  return new Encoder(json, controlTokens({ json, config: undefined, templates: [], ids: [] }));
}

/** The ids that the library itself gives. */
function reference(raw: Json): (text: string) => number[] {
  const library = new Tokenizer(raw, {}) as {
    encode(text: string, options: object): { ids: number[] };
  };
  return (text) => library.encode(text, { add_special_tokens: false }).ids;
}

const metaspace = { type: "Metaspace", replacement: "▁", prepend_scheme: "first", split: true };
const gpt4 =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const split = { type: "Split", pattern: { Regex: gpt4 }, behavior: "Isolated", invert: false };

describe("Encoder", () => {
  it.each<[what: string, json: Json]>([
    ["GPT-2", byteLevel()],
    [
      "Llama 3",
      byteLevel([], {
        pre_tokenizer: { type: "Sequence", pretokenizers: [split, { type: "ByteLevel", use_regex: false }] },
      }),
    ],
    ["Qwen: NFC", byteLevel([], { normalizer: { type: "NFC" } })],
    [
      "added words and spaces",
      byteLevel([
        { id: 290, content: "  ", special: false, normalized: true },
        { id: 291, content: "<think>", special: false, normalized: false },
      ]),
    ],
    [
      "tokens that take white space",
      byteLevel([{ id: 290, content: "<|t|>", special: true, lstrip: true, rstrip: true }]),
    ],
    ["Llama 2", sentencePiece()],
    ["Mistral: Metaspace", sentencePiece([], { normalizer: null, pre_tokenizer: metaspace })],
    [
      "normalised added tokens",
      byteLevel([{ id: 290, content: "The", special: false, normalized: true }], { normalizer: { type: "Lowercase" } }),
    ],
    ["Unigram", unigram()],
    ["tale-gpt", JSON.parse(readFileSync(join(root, "infra/models/tale-gpt/tokenizer.json"), "utf8")) as Json],
  ])("gives what the library gives: %s", (_, json) => {
    const [encoder, expected] = [open(json), reference(json)];
    const random = seededRandom(3);
    const bits = [
      "the",
      " the",
      "hello",
      " ",
      "  ",
      "\n",
      "é",
      "e\u0301",
      "😀",
      "x",
      "1234",
      "'ll",
      "<|im_end|>",
      "</s>",
      "<think>",
      "<|t|>",
      "THE",
    ];
    for (let i = 0; i < 300; i++) {
      const text = Array.from({ length: random.between(0, 12) }, () => random.pick(bits)).join("");
      expect(encoder.encode(text), JSON.stringify(text)).toEqual(expected(text));
    }
  });

  it("puts around a text what the post-processor does", () => {
    expect(open(byteLevel()).surround([7])).toEqual([0, 7]);
    const bert = { type: "BertProcessing", cls: ["<s>", 0], sep: ["</s>", 1] };
    expect(open(byteLevel([], { post_processor: bert })).surround([7])).toEqual([0, 7, 1]);
    const sequence = { type: "Sequence", processors: [{ type: "ByteLevel" }, bert] };
    expect(open(byteLevel([], { post_processor: sequence })).surround([7])).toEqual([0, 7, 1]);
    expect(open(byteLevel([], { post_processor: null })).surround([7])).toEqual([7]);
  });

  it("spells characters in bytes where a Unigram model can", () => {
    const { model } = unigram() as { model: { vocab: unknown[] } };
    const bytes = Array.from({ length: 256 }, (_, i) => [`<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`, -20]);
    const vocab = [...model.vocab, ...bytes];
    const encoder = open(unigram([], { model: { ...model, byte_fallback: true, vocab } }));
    const first = model.vocab.length;
    expect(encoder.encode("é").slice(-2)).toEqual([first + 0xc3, first + 0xa9]);
  });

  it("knows whole words", () => {
    const model = { type: "WordLevel", vocab: { hello: 4, world: 5, "[UNK]": 6, "<s>": 0 }, unk_token: "[UNK]" };
    const encoder = open(byteLevel([], { model, pre_tokenizer: { type: "WhitespaceSplit" }, post_processor: null }));
    expect(encoder.encode("hello there world")).toEqual([4, 6, 5]);
  });

  it("takes long runs of one letter, of emoji chains, of spaces and of combining marks", () => {
    const nfc = open(byteLevel([], { normalizer: { type: "NFC" } }));
    const length = 2 ** 17;
    for (const text of [
      "l".repeat(length),
      "👨‍👩‍👧‍👦".repeat(length / 25),
      " ".repeat(length),
      `a${"\u0315\u0300".repeat(length / 4)}`,
    ]) {
      expect(nfc.encode(text).length).toBeGreaterThan(length / 4);
    }
    // The library puts all tokens of a word on the stack, so the encoder splits long words first.
    expect(open(unigram()).encode("k".repeat(length)).length).toBe(length + 1);
  });

  it.each<[what: string, over: Json, error: RegExp]>([
    ["an unknown model", { model: { type: "Charm", vocab: {} } }, /model type 'Charm' is not known/],
    ["an unknown splitter", { pre_tokenizer: { type: "Charm" } }, /Unknown PreTokenizer type: Charm/],
    [
      "a broken expression",
      { pre_tokenizer: { type: "Split", pattern: { Regex: "(" } } },
      /^tokenizer\.json cannot be used/,
    ],
    [
      "a token from nowhere",
      { post_processor: { type: "BertProcessing", cls: ["[CLS]", 9], sep: ["</s>", 1] } },
      /'\[CLS\]' is not in the vocabulary/,
    ],
  ])("refuses %s", (_, over, error) => {
    expect(() => open(byteLevel([], over))).toThrow(error);
  });
});
