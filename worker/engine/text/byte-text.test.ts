import { describe, expect, it } from "vitest";
import { ByteText } from "./byte-text.js";
import { uniform } from "../sampling/random.js";
import { TokenText } from "./text.js";

/** Tokens 0 to 255 are the bytes. The next tokens have several bytes, and one token is special. */
const several = ["", " the", "é", "a😀", "\ufeff"].map((text) => Buffer.from(text));
const halves = [
  [0x61, 0xf0, 0x9f],
  [0x98, 0x80, 0x62],
  [0xe0, 0x80, 0xed, 0xa0],
].map((bytes) => Buffer.from(bytes));
const pieces = [...Array.from({ length: 256 }, (_, byte) => Buffer.of(byte)), ...several, ...halves];
const SPECIAL = 256;
const THE = 257;

const bytesOf = (token: number): Uint8Array => pieces[token] ?? new Uint8Array();
const decode = (tokens: readonly number[]): string => {
  const bytes = Buffer.concat(tokens.map((token) => bytesOf(token)));
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
};
const utf8 = (text: string): number[] => [...Buffer.from(text)];

function pushed(tokens: readonly number[], prompt: readonly number[] = []): string[] {
  const text = new ByteText(bytesOf, prompt);
  return [...tokens.map((token) => text.push(token)), text.flush()];
}

/** A text of whole characters, parts of characters and arbitrary bytes. */
function someTokens(round: number, count: number): number[] {
  const whole = ["a", "é", "你", "😀", "👩‍👩‍👧", "\n", "\ufffd"].map(utf8);
  const leads = [0xc0, 0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5];
  return Array.from({ length: count }, (_, i) => {
    const at = (draw: number) => uniform(11, round, i, draw);
    const of = <T>(items: readonly T[]) => items[Math.floor(at(1) * items.length)] as T;
    const kind = at(0);
    if (kind < 0.3) return of(whole);
    if (kind < 0.5) return of(whole).slice(0, 1 + Math.floor(at(2) * 3));
    if (kind < 0.6) return [of(leads), 0x80 + Math.floor(at(2) * 64)];
    if (kind < 0.8) return [Math.floor(at(2) * 256)];
    return [SPECIAL + Math.floor(at(2) * (pieces.length - SPECIAL))];
  }).flat();
}

describe("ByteText", () => {
  it.each<[what: string, tokens: number[], texts: string[]]>([
    ["gives letters as they come", utf8("hi!"), ["h", "i", "!", ""]],
    ["gives a token of several letters", [...utf8("a"), THE], ["a", " the", ""]],
    ["gives a character of two bytes when it is whole", utf8("aé"), ["a", "", "é", ""]],
    ["gives emojis one by one", utf8("😀😁"), ["", "", "", "😀", "", "", "", "😁", ""]],
    ["gives an emoji that a special token interrupts", [0xf0, 0x9f, SPECIAL, 0x98, 0x80], ["", "", "", "", "😀", ""]],
    ["gives what is no character at once", [0xff, 0x80, ...utf8("a")], ["\ufffd", "\ufffd", "a", ""]],
    ["gives a character that nothing completes with what follows", [0xf0, 0x9f, ...utf8("a")], ["", "", "\ufffda", ""]],
    ["gives bytes that are no character at the end", [...utf8("a"), 0xf0, 0x9f], ["a", "", "", "\ufffd"]],
    ["does not wait where nothing can come of it", [0xe0, 0x80], ["", "\ufffd\ufffd", ""]],
    ["gives U+FFFD itself", utf8("\ufffda"), ["", "", "\ufffd", "a", ""]],
    ["keeps a byte order mark", utf8("\ufeffa"), ["", "", "\ufeff", "a", ""]],
    ["gives nothing for nothing", [], [""]],
  ])("%s", (_what, tokens, texts) => {
    expect(pushed(tokens)).toEqual(texts);
  });

  it("completes a character that the prompt began, and shows none of the prompt's bytes if nothing comes of it", () => {
    expect(pushed([0x98, 0x80], utf8("a😀").slice(0, 3))).toEqual(["", "😀", ""]);
    expect(pushed([0xa0, 0x61], utf8("a你").slice(0, 3))).toEqual(["你", "a", ""]);
    expect(pushed(utf8("bc"), utf8("a你").slice(0, 3))).toEqual(["b", "c", ""]);
    expect(pushed([], utf8("a你").slice(0, 3))).toEqual([""]);
    expect(pushed([0xff, 0xff], [0xf0])).toEqual(["\ufffd", "\ufffd", ""]);
  });

  it("gives, over all, what the bytes of all tokens are, whole characters at a time", () => {
    for (let round = 0; round < 500; round++) {
      const tokens = someTokens(round, 20);
      const texts = pushed(tokens);
      expect(texts.join(""), JSON.stringify(tokens)).toBe(decode(tokens));
      for (const text of texts) expect(Buffer.from(text).toString()).toBe(text);
    }
  });

  it("gives after a prompt what the text of any tokenizer gives", () => {
    for (let round = 0; round < 500; round++) {
      const prompt = someTokens(round, 3);
      const tokens = [...utf8("x"), ...someTokens(round + 1_000, 5)].slice(round % 2);
      const other = new TokenText({ decode, bytesOf }, prompt);
      const expected = [...tokens.map((token) => other.push(token)), other.flush()].join("");
      expect(pushed(tokens, prompt).join(""), JSON.stringify({ prompt, tokens })).toBe(expected);
    }
  });

  it("goes on from any token as if it had never been interrupted", () => {
    for (let round = 0; round < 300; round++) {
      const prompt = someTokens(round + 2_000, 2);
      const tokens = someTokens(round, 8);
      const whole = pushed(tokens, prompt);
      for (let cut = 0; cut <= tokens.length; cut++) {
        const text = new ByteText(bytesOf, prompt);
        text.skip(tokens.slice(0, cut));
        const rest = [...tokens.slice(cut).map((token) => text.push(token)), text.flush()];
        expect(rest, JSON.stringify({ prompt, tokens, cut })).toEqual(whole.slice(cut));
      }
    }
  });
});
