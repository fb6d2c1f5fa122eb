import { describe, expect, it } from "vitest";
import { byteLevel, type Added } from "../../test/fixtures/tokenizers.js";
import { controlTokens, namedTokens } from "./control-tokens.js";
import { tokenizerConfig, tokenizerJson } from "./schema.js";

function controls(added: readonly Added[], config: object = {}, templates: readonly string[] = [], ids: number[] = []) {
  const json = tokenizerJson.parse(byteLevel(added));
  const found = controlTokens({ json, config: tokenizerConfig.parse(config), templates, ids });
  return found
    .map(({ content }) => content)
    .filter((content) => !["<s>", "</s>"].includes(content) && !content.includes("im_"));
}

const text = (content: string, id = 300): Added => ({ id, content, special: false });

describe("controlTokens", () => {
  it.each<[what: string, found: string[], expected: string[]]>([
    ["special tokens", controls([{ id: 300, content: "<|x|>", special: true }]), ["<|x|>"]],
    ["no others", controls([text("<think>"), text("<|fim|>", 301)]), []],
    [
      "turn markers of the template",
      controls([text("<｜User｜>")], {}, ["{{ '<｜User｜>' + content }}"]),
      ["<｜User｜>"],
    ],
    ["no other tokens of the template", controls([text("<think>")], {}, ["{{ '<think>' }}"]), []],
    ["what ends a text", controls([text("<end>")], {}, [], [300]), ["<end>"]],
    ["what tokenizer_config.json names", controls([text("<mine>")], { pad_token: { content: "<mine>" } }), ["<mine>"]],
    ["its additional tokens", controls([text("<mine>")], { additional_special_tokens: ["<mine>"] }), ["<mine>"]],
    ["its decoder's flags", controls([text("<x>")], { added_tokens_decoder: { 300: { special: true } } }), ["<x>"]],
    ["tokens that it alone names", controls([], { eos_token: "the" }), ["the"]],
    ["no single character", controls([text("!")], { pad_token: "!" }), []],
    ["no white space", controls([{ id: 300, content: "\n\n", special: true }]), []],
  ])("finds %s", (_, found, expected) => {
    expect(found).toEqual(expected);
  });
});

describe("namedTokens", () => {
  it("reads texts and tokens with flags, and leaves nulls out", () => {
    const config = tokenizerConfig.parse({
      bos_token: "<s>",
      eos_token: { content: "</s>", lstrip: false },
      pad_token: null,
    });
    expect(namedTokens(config)).toEqual({ bos_token: "<s>", eos_token: "</s>" });
  });
});
