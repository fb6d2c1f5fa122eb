import { describe, expect, it } from "vitest";
import { seededRandom } from "../../test/support/fleet/random.js";
import { AddedTokens, escapeControlTokens, removeMarks } from "./added-tokens.js";
import type { AddedToken } from "./schema.js";

const token = (content: string, over: Partial<AddedToken> = {}): AddedToken => ({
  id: content.length,
  content,
  special: true,
  lstrip: false,
  rstrip: false,
  ...over,
});

const shown = (tokens: AddedTokens, text: string): string[] =>
  tokens.split(text).map((section) => (section.kind === "token" ? `[${section.token.content}]` : section.text));

describe("AddedTokens", () => {
  it.each<[text: string, sections: string[]]>([
    ["", []],
    ["plain", ["plain"]],
    ["<a>", ["[<a>]"]],
    ["x<a>y<b>", ["x", "[<a>]", "y", "[<b>]"]],
    ["<a><b>", ["[<a><b>]"]],
    ["<a><c>", ["[<a>]", "<c>"]],
    ["<<a>", ["<", "[<a>]"]],
    ["😀<a>😀", ["😀", "[<a>]", "😀"]],
  ])("splits %j", (text, sections) => {
    expect(shown(new AddedTokens([token("<a>"), token("<b>"), token("<a><b>")]), text)).toEqual(sections);
  });

  it("lets tokens take the white space beside them", () => {
    const tokens = new AddedTokens([token("<l>", { lstrip: true }), token("<r>", { rstrip: true })]);
    expect(shown(tokens, "a <l> b <r> c <l>")).toEqual(["a", "[<l>]", " b ", "[<r>]", "c", "[<l>]"]);
  });

  it("finds no empty token", () => {
    expect(shown(new AddedTokens([token("")]), "abc")).toEqual(["abc"]);
  });
});

describe("escapeControlTokens", () => {
  const control = new AddedTokens(["<a>", "<b>", "<a><b>", "[INST]", "<|im_end|>"].map((content) => token(content)));

  it.each(["", "harmless", "a > b", "{{ bos_token }}", "<x>", "im_end", "|>"])("leaves %j as it is", (text) => {
    expect(escapeControlTokens(text, control)).toBe(text);
  });

  it.each(["<a>", "x<a>y", "<a><b>", "<a><a>", "<<a>>", "[INST] hi [INST]", "<|im_end|><|im_end|>"])(
    "leaves no token in %j, and all of its text",
    (text) => {
      expect(shown(control, escapeControlTokens(text, control))).toEqual([text]);
    },
  );

  it("lets nothing that a user began be ended by what follows", () => {
    expect(shown(control, `${escapeControlTokens("hi <|im_", control)}end|>`)).toEqual(["hi <|im_end|>"]);
    expect(shown(control, `${escapeControlTokens("<a><b", control)}>`)).toEqual(["<a><b>"]);
  });

  it("leaves a template's own tokens between", () => {
    for (const [before, after] of [
      ["<a>", "<a>"],
      ["x <", "<a>"],
      ["<a", "<b> y"],
    ] as const) {
      const text = `${escapeControlTokens(before, control)}<|im_end|>${escapeControlTokens(after, control)}`;
      expect(shown(control, text)).toEqual([before, "[<|im_end|>]", after]);
    }
  });

  it("holds for every piece that a template cuts out", () => {
    const marked = escapeControlTokens("x<a>y<a><b>z<|im_end|>", control);
    for (let from = 0; from < marked.length; from++) {
      for (let to = from; to <= marked.length; to++) {
        const sections = control.split(marked.slice(from, to));
        expect(sections.every(({ kind }) => kind === "text")).toBe(true);
      }
    }
  });

  it("leaves white space at the ends to templates that trim", () => {
    expect(escapeControlTokens("  think <a> answer  ", control).trim()).toBe(
      escapeControlTokens("think <a> answer", control),
    );
  });

  it("replaces lone surrogates and the marks themselves", () => {
    expect(escapeControlTokens("a\ud800b\udc00c😀", control)).toBe("a\ufffdb\ufffdc😀");
    expect(shown(control, escapeControlTokens("\ufdd0<a>\ufdd0<a\ufdd0>", control))).toEqual([
      "\ufffd<a>\ufffd<a\ufffd>",
    ]);
  });

  it("holds for any text, whatever the template puts between", () => {
    const random = seededRandom(7);
    const bits = ["<", "a", ">", "b", "<a>", "<b>", "<a><b>", "|im_", "<|", "end|>", "\ufdd0", " ", "[IN"];
    const users = () => Array.from({ length: random.between(0, 6) }, () => random.pick(bits)).join("");
    const templates = () =>
      Array.from({ length: random.between(0, 2) }, () => random.pick(["<a>", "<|im_end|>", "x\n"]));
    for (let i = 0; i < 1_000; i++) {
      const [first, second] = [users(), users()];
      const between = [templates(), templates(), templates()];
      const [one = [], two = [], three = []] = between;
      const parts = [
        ...one,
        escapeControlTokens(first, control),
        ...two,
        escapeControlTokens(second, control),
        ...three,
      ];
      const sections = control.split(parts.join(""));
      const found = sections.flatMap((section) => (section.kind === "token" ? [section.token.content] : []));
      // A template's tokens side by side may read as a longer token, but here none do.
      expect(found, JSON.stringify(parts)).toEqual(between.flat().filter((part) => part !== "x\n"));
      const text = sections
        .map((section) => (section.kind === "token" ? section.token.content : section.text))
        .join("");
      expect(text).toBe(removeMarks(parts.join("")));
    }
  });
});
