import { Tokenizer } from "@huggingface/tokenizers";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../test/support/fleet/random.js";
import { root } from "../../test/support/fleet/root.js";
import { byteLevel, sentencePiece, unigram, writeTokenizer, type Json } from "../../test/fixtures/tokenizers.js";
import { openText } from "./output-text.js";
import { readTokenizerJson, textsOf } from "./tokenizer-json.js";

/** The id of a token by its text in the vocabulary. */
function ids(json: Json, ...tokens: string[]): number[] {
  const texts = textsOf(readTokenizerJson(writeTokenizer(json)));
  return tokens.map((token) => texts.indexOf(token));
}

const bytesOf = (json: Json, ...tokens: string[]): number[][] => {
  const text = openText(writeTokenizer(json));
  return ids(json, ...tokens).map((id) => [...text.bytesOf(id)]);
};

const utf8 = (text: string): number[] => [...Buffer.from(text)];

describe("openText", () => {
  it.each<[what: string, json: Json]>([
    ["byte-level", byteLevel()],
    ["byte-level in a sequence", byteLevel([], { decoder: { type: "Sequence", decoders: [{ type: "ByteLevel" }] } })],
    ["sentencepiece", sentencePiece()],
    ["Unigram", unigram()],
    ["WordPiece", byteLevel([], { decoder: { type: "WordPiece", prefix: "##", cleanup: false } })],
    ["no decoder", byteLevel([], { decoder: null })],
    ["tale-gpt", JSON.parse(readFileSync(join(root, "infra/models/tale-gpt/tokenizer.json"), "utf8")) as Json],
  ])("decodes as the library does: %s", (_, json) => {
    const library = new Tokenizer(json, {}) as { decode(ids: number[], options: object): string };
    const text = openText(writeTokenizer(json));
    const size = textsOf(readTokenizerJson(writeTokenizer(json))).length;
    const random = seededRandom(5);
    for (let i = 0; i < 300; i++) {
      const tokens = Array.from({ length: random.between(1, 20) }, () => random.between(0, size - 1));
      const expected = library.decode(tokens, { skip_special_tokens: true, clean_up_tokenization_spaces: false });
      expect(text.decode(tokens), tokens.join(",")).toBe(expected);
    }
  });

  it("joins the bytes of a character that has several tokens", () => {
    const json = byteLevel();
    const emoji = ids(json, "ð", "Ł", "ĺ", "Ģ");
    expect(openText(writeTokenizer(json)).decode(emoji)).toBe("😀");
    expect(openText(writeTokenizer(json)).decode(emoji.slice(0, 2))).toBe("\ufffd");
  });

  it("shows added tokens that are not special, as they are", () => {
    const json = byteLevel([
      { id: 400, content: "<é ▁>", special: false },
      { id: 401, content: "<hidden>", special: true },
    ]);
    const text = openText(writeTokenizer(json));
    expect(text.decode([0, 400, 401, ...ids(json, "Ġthe")])).toBe("<é ▁> the");
    expect([...text.bytesOf(400)]).toEqual(utf8("<é ▁>"));
  });

  it("gives single tokens' bytes", () => {
    expect(bytesOf(byteLevel(), "Ġthe", "ð", "<|im_end|>")).toEqual([utf8(" the"), [0xf0], utf8("<|im_end|>")]);
    expect(bytesOf(sentencePiece(), "▁the", "<0xC3>", "he")).toEqual([utf8(" the"), [0xc3], utf8("he")]);
    expect(bytesOf(unigram(), "▁the", "</s>")).toEqual([utf8(" the"), utf8("</s>")]);
  });

  it("knows no token for an id that a padded vocabulary adds", () => {
    const text = openText(writeTokenizer(byteLevel()));
    expect([text.decode([5_000]), text.bytesOf(5_000).length]).toEqual(["", 0]);
  });

  it.each<[what: string, json: unknown, error: RegExp]>([
    ["what is no JSON", "{", /^tokenizer\.json cannot be read$/],
    ["an unknown decoder", byteLevel([], { decoder: { type: "Charm" } }), /Unknown Decoder type: Charm/],
    ["a vocabulary of nothing", byteLevel([], { model: { vocab: { a: null } } }), /holds something that is no token/],
  ])("refuses %s", (_, json, error) => {
    expect(() => openText(writeTokenizer(json))).toThrow(error);
  });

  it("names no path where there is no file", () => {
    expect(() => openText("/nowhere/tokenizer.json")).toThrow(/^tokenizer\.json cannot be read$/);
  });
});
