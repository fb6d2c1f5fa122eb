import { Tokenizer } from "@huggingface/tokenizers";
import { describe, expect, it } from "vitest";
import { uniform } from "../sampling/random.js";
import { TokenText, type TextOf } from "./text.js";

/**
 * GPT-2's alphabet: printable bytes stand for themselves, and characters from U+0100 stand for the
 * other bytes.
 */
const charOfByte = (() => {
  let next = 0x1_00;
  const prints = (byte: number): boolean => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(prints(byte) ? byte : next++));
})();

const special = (id: number, content: string) => ({
  id,
  content,
  special: true,
  lstrip: false,
  rstrip: false,
  normalized: false,
  single_word: false,
});

/**
 * Tokens 0 to 255 are the bytes, 256 is " the", 257 is "a" and half an emoji, 300 and 301 are
 * special.
 */
const byteLevel = tokenizer({
  model: {
    type: "BPE",
    vocab: Object.fromEntries([
      ...charOfByte.map((char, byte) => [char, byte]),
      ["Ġthe", 256],
      ["a" + bytes(0xf0, 0x9f), 257],
    ]),
    merges: [],
  },
  decoder: { type: "ByteLevel" },
  added_tokens: [special(300, "<|end|>"), special(301, "<|start|>")],
});

/**
 * A tokenizer like that of Llama 2: words begin with ▁, and bytes have their own tokens (10 to
 * 265).
 */
const sentencePiece = tokenizer({
  model: {
    type: "BPE",
    byte_fallback: true,
    unk_token: "<unk>",
    vocab: Object.fromEntries([
      ["<unk>", 0],
      ["▁", 1],
      ["▁Hello", 2],
      ["▁world", 3],
      ["!", 4],
      ...Array.from({ length: 256 }, (_, byte) => [
        `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
        10 + byte,
      ]),
    ]),
    merges: [],
  },
  decoder: {
    type: "Sequence",
    decoders: [
      { type: "Replace", pattern: { String: "▁" }, content: " " },
      { type: "ByteFallback" },
      { type: "Fuse" },
      { type: "Strip", content: " ", start: 1, stop: 0 },
    ],
  },
  added_tokens: [special(300, "<s>")],
});

interface Counted extends TextOf {
  /** The most tokens in one call of `decode`. */
  widest: number;
}

function tokenizer(json: object): Counted {
  const made = new Tokenizer({ normalizer: null, pre_tokenizer: null, post_processor: null, ...json }, {});
  return {
    widest: 0,
    decode(tokens) {
      this.widest = Math.max(this.widest, tokens.length);
      return made.decode([...tokens], { skip_special_tokens: true, clean_up_tokenization_spaces: false });
    },
    bytesOf: () => new Uint8Array(),
  };
}

function bytes(...values: number[]): string {
  return values.map((byte) => charOfByte[byte]).join("");
}

const utf8 = (text: string): number[] => [...Buffer.from(text, "utf8")];

function pushed(text: TextOf, tokens: readonly number[], prompt: readonly number[] = []): string[] {
  const stream = new TokenText(text, prompt);
  return [...tokens.map((token) => stream.push(token)), stream.flush()];
}

describe("TokenText on bytes", () => {
  it.each<[what: string, tokens: number[], texts: string[]]>([
    ["gives letters as they come", utf8("hi!"), ["h", "i", "!", ""]],
    ["gives a token of several letters", [...utf8("a"), 256], ["a", " the", ""]],
    ["gives a character of two bytes when it is whole", utf8("aé"), ["a", "", "é", ""]],
    ["gives an emoji when it is whole", utf8("😀!"), ["", "", "", "😀", "!", ""]],
    ["gives emojis one by one", utf8("😀😁"), ["", "", "", "😀", "", "", "", "😁", ""]],
    ["holds a letter whose token begins an emoji", [257, 0x98, 0x80], ["", "", "a😀", ""]],
    ["gives nothing for special tokens", [301, ...utf8("a"), 300, ...utf8("b")], ["", "a", "", "b", ""]],
    ["gives an emoji that a special token interrupts", [0xf0, 0x9f, 300, 0x98, 0x80], ["", "", "", "", "😀", ""]],
    ["gives bytes that are no character with what follows", [0xff, ...utf8("a")], ["", "\ufffda", ""]],
    ["gives bytes that are no character at the end", [...utf8("a"), 0xf0, 0x9f], ["a", "", "", "\ufffd"]],
    ["gives U+FFFD itself", utf8("\ufffda"), ["", "", "", "\ufffda", ""]],
    ["keeps a byte order mark", utf8("\ufeffa"), ["", "", "\ufeff", "a", ""]],
    ["gives nothing for nothing", [], [""]],
  ])("%s", (_what, tokens, texts) => {
    expect(pushed(byteLevel, tokens)).toEqual(texts);
  });

  it("gives up on invalid bytes after eight tokens, but not on an emoji that begins there", () => {
    const tokens = [...Array.from({ length: 8 }, () => 0xff), ...utf8("😀"), ...utf8("b")];
    const texts = pushed(byteLevel, tokens);
    expect(texts.join("")).toBe(`${"\ufffd".repeat(8)}😀b`);
    expect(texts[8]).toBe("\ufffd".repeat(8));
  });

  it("never holds more than a few tokens of an endless run of invalid bytes, nor of special tokens", () => {
    byteLevel.widest = 0;
    const invalid = pushed(
      byteLevel,
      Array.from({ length: 1000 }, () => 0xff),
    );
    expect(invalid.join("")).toBe("\ufffd".repeat(1000));
    expect(Math.max(...invalid.map(({ length }) => length))).toBeLessThanOrEqual(9);
    expect(pushed(byteLevel, [0x61, ...Array.from({ length: 1000 }, () => 300), 0x62]).join("")).toBe("ab");
    expect(byteLevel.widest).toBeLessThanOrEqual(20);
  });

  it("completes a character that the prompt began", () => {
    expect(pushed(byteLevel, [0x98, 0x80], utf8("a😀").slice(0, 3))).toEqual(["", "😀", ""]);
    expect(pushed(byteLevel, [0xa0, 0x61], utf8("a你").slice(0, 3))).toEqual(["你", "a", ""]);
  });

  it("gives, over all, what the tokenizer makes of all tokens, whole characters at a time", () => {
    const pieces = ["a", " the", "é", "你", "😀", "👩‍👩‍👧", "\n", "\ufffd"].map(utf8);
    for (let round = 0; round < 300; round++) {
      const tokens: number[] = [];
      for (let i = 0; i < 20; i++) {
        const kind = uniform(3, round, i, 0);
        const piece = pieces[Math.floor(uniform(3, round, i, 1) * pieces.length)] ?? [];
        if (kind < 0.5) tokens.push(...piece);
        else if (kind < 0.7) tokens.push(Math.floor(uniform(3, round, i, 2) * 256));
        else if (kind < 0.8) tokens.push(...piece.slice(0, 2));
        else if (kind < 0.9) tokens.push(256, 257);
        else tokens.push(300);
      }
      const texts = pushed(byteLevel, tokens);
      expect(texts.join(""), JSON.stringify(tokens)).toBe(byteLevel.decode(tokens));
      for (const text of texts) expect(Buffer.from(text).toString()).toBe(text);
    }
  });
});

describe("TokenText on words that begin with a space", () => {
  it("begins without the space where there is no prompt", () => {
    expect(pushed(sentencePiece, [2, 3, 4])).toEqual(["Hello", " world", "!", ""]);
  });

  it("begins with the space after a prompt", () => {
    expect(pushed(sentencePiece, [3, 4], [300, 2])).toEqual([" world", "!", ""]);
    expect(pushed(sentencePiece, [2], [300])).toEqual(["Hello", ""]);
  });

  it("keeps a space that only the next token shows", () => {
    expect(pushed(sentencePiece, [1, 2])).toEqual(["", " Hello", ""]);
    expect(pushed(sentencePiece, [2, 1, 3])).toEqual(["Hello", " ", " world", ""]);
  });

  it("still knows after a long run of special tokens that it is within the text", () => {
    const between = Array.from({ length: 50 }, () => 300);
    expect(pushed(sentencePiece, [2, ...between, 3]).join("")).toBe("Hello world");
  });

  it("gives characters made of byte tokens when they are whole", () => {
    const emoji = utf8("😀").map((byte) => 10 + byte);
    expect(pushed(sentencePiece, [2, ...emoji, 3])).toEqual(["Hello", "", "", "", "😀", " world", ""]);
    expect(pushed(sentencePiece, [2, 10 + 0xff, 3])).toEqual(["Hello", "", "\ufffd world", ""]);
  });
});
