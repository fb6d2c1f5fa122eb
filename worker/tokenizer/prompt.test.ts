import { Tokenizer } from "@huggingface/tokenizers";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { PromptSpec } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import { seededRandom } from "../../test/support/fleet/random.js";
import { root } from "../../test/support/fleet/root.js";
import {
  byteLevel,
  controls,
  sentencePiece,
  unigram,
  writeTokenizer,
  type Json,
} from "../../test/fixtures/tokenizers.js";
import { openTemplate } from "./jinja.js";
import { PromptEncoder } from "./prompt.js";
import type { TokenizerOptions } from "./protocol.js";
import { tokenizerConfig } from "./schema.js";
import { openText } from "./output-text.js";

const chatml =
  "{{ bos_token }}{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

const text = (value: string): PromptSpec => ({ kind: "text", text: value });
const chat = (...messages: Extract<PromptSpec, { kind: "chat" }>["messages"]): PromptSpec => ({
  kind: "chat",
  messages,
  addGenerationPrompt: true,
});
const user = (content: unknown) => ({ role: "user", content });

interface Opened {
  ids(prompt: PromptSpec, continues?: boolean): number[];
  refusal(prompt: PromptSpec, continues?: boolean): string;
  /** The text of each token by itself. */
  spelled(prompt: PromptSpec, continues?: boolean): string[];
}

function open(json: Json, over: Partial<TokenizerOptions> = {}): Opened {
  const tokenizerFile = writeTokenizer(json);
  const options = {
    name: "tale",
    tokenizerFile,
    tokenizerConfig: tokenizerConfig.parse({ bos_token: "<s>", eos_token: { content: "</s>" } }),
    chatTemplate: chatml,
    vocabSize: 1_000,
    eos: [1],
    bos: 0,
  };
  const encoder = new PromptEncoder({ ...options, ...over });
  const output = openText(tokenizerFile);
  const ids = (prompt: PromptSpec, continues = false): number[] => [...encoder.encode({ prompt, continues })];
  return {
    ids,
    spelled: (prompt, continues) => ids(prompt, continues).map((id) => Buffer.from(output.bytesOf(id)).toString()),
    refusal(prompt, continues) {
      try {
        ids(prompt, continues);
      } catch (error) {
        if (error instanceof InferenceError && error.code === "invalid_argument") return error.message;
        throw error;
      }
      return "nothing is wrong with it";
    },
  };
}

const tokenizers: [what: string, json: Json][] = [
  ["byte-level", byteLevel()],
  [
    "byte-level that takes whole words first",
    byteLevel([], {
      pre_tokenizer: { type: "Split", pattern: { Regex: "\\S+" }, behavior: "Isolated" },
      model: { ...(byteLevel()["model"] as Json), ignore_merges: true },
    }),
  ],
  ["sentencepiece", sentencePiece()],
  ["Unigram", unigram()],
];

describe("PromptEncoder", () => {
  it("puts the tokenizer's own tokens around a text, unless it continues others", () => {
    const tale = open(byteLevel());
    expect(tale.spelled(text("hello the"))).toEqual(["<s>", "hell", "o", " the"]);
    expect(tale.spelled(text("hello the"), true)).toEqual(["hell", "o", " the"]);
  });

  it("renders a conversation; a turn that continues one begins no text anew", () => {
    const tale = open(byteLevel());
    const whole = ["<s>", "<|im_start|>", "u", "s", "e", "r", "\n", "hell", "o", "<|im_end|>", "\n", "<|im_start|>"];
    expect(tale.spelled(chat(user("hello"))).slice(0, 12)).toEqual(whole);
    expect(tale.spelled(chat(user("hello")), true).slice(0, 11)).toEqual(whole.slice(1));
  });

  it("takes tokens as they are", () => {
    expect(open(byteLevel()).ids({ kind: "tokens", tokens: [0, 3, 999] }, true)).toEqual([0, 3, 999]);
  });

  it("replaces lone surrogates", () => {
    const tale = open(byteLevel());
    expect(tale.ids(text("a\ud83db"))).toEqual(tale.ids(text("a\ufffdb")));
    expect(tale.ids(chat(user("a\ude00")))).toEqual(tale.ids(chat(user("a\ufffd"))));
  });

  it.each<[what: string, prompt: PromptSpec, error: string]>([
    [
      "a token that the model does not have",
      { kind: "tokens", tokens: [3, 1_000] },
      "token id 1000 is out of the vocabulary of 1000",
    ],
    [
      "a token beyond 32 bits",
      { kind: "tokens", tokens: [2 ** 32] },
      "token id 4294967296 is out of the vocabulary of 1000",
    ],
    ["no tokens", { kind: "tokens", tokens: [] }, "the prompt is empty"],
  ])("refuses %s", (_, prompt, error) => {
    expect(open(byteLevel()).refusal(prompt)).toBe(error);
  });

  it("refuses a text that comes to nothing", () => {
    expect(open(byteLevel()).ids(text(""))).toEqual([0]);
    expect(open(byteLevel()).refusal(text(""), true)).toBe("the prompt is empty");
    expect(open(byteLevel([], { post_processor: null })).refusal(text(""))).toBe("the prompt is empty");
  });

  it("refuses text that the tokenizer knows and the model does not", () => {
    expect(open(byteLevel(), { vocabSize: 100 }).refusal(text("~~~é"))).toMatch(
      /^token id \d+ is out of the vocabulary of 100$/,
    );
  });

  it("refuses a conversation where there is no template", () => {
    expect(open(byteLevel(), { chatTemplate: undefined }).refusal(chat(user("x")))).toBe(
      "model 'tale' has no chat template",
    );
  });

  it("knows the special tokens by their ids where there is no tokenizer_config.json", () => {
    const tale = open(byteLevel(), {
      tokenizerConfig: undefined,
      chatTemplate: "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}",
    });
    expect(tale.spelled(chat(user("x")))).toEqual(["<s>", "x", "</s>"]);
  });
});

describe("harmless prompts are tokenised as Hugging Face does", () => {
  it.each(tokenizers)("%s", (_, json) => {
    const tale = open(json);
    const library = new Tokenizer(json, {}) as { encode(text: string, options: object): { ids: number[] } };
    const random = seededRandom(11);
    const words = ["the", " the", "hello", "\n", "é", "😀", "{{ x }}", " ", "<", "im_end", "|>", "it's"];
    for (let i = 0; i < 200; i++) {
      const content = Array.from({ length: random.between(0, 8) }, () => random.pick(words)).join("");
      if (controls.some((token) => content.includes(token.content))) continue;
      const rendered = openTemplate(chatml)({
        messages: [user(content)],
        add_generation_prompt: true,
        bos_token: "<s>",
      });
      expect(tale.ids(chat(user(content))), content).toEqual(
        library.encode(rendered, { add_special_tokens: false }).ids,
      );
    }
  });
});

describe("no text becomes a control token", () => {
  const controlIds = new Set(controls.map(({ id }) => id));

  it.each(tokenizers)("%s", (_, json) => {
    const tale = open(json, { chatTemplate: "{% for m in messages %}{{ m.content }}{% endfor %}" });
    const random = seededRandom(13);
    const bits = ["<|im_end|>", "<|im_start|>", "</s>", "<s>", "<|im_", "end|>", "<", "s>", " x", "x", "\ufdd0"];
    for (let i = 0; i < 300; i++) {
      const parts = Array.from({ length: 2 }, () =>
        Array.from({ length: random.between(1, 5) }, () => random.pick(bits)).join(""),
      );
      const ids = [...tale.ids(text(parts.join("")), true), ...tale.ids(chat(...parts.map(user)))];
      const found = ids.filter((id) => controlIds.has(id) && id !== unknownOf(json));
      expect(found, JSON.stringify(parts)).toEqual([]);
    }
  });

  it("and reads as it was written", () => {
    const tale = open(byteLevel());
    expect(tale.spelled(text("a<|im_end|>")).join("")).toBe("<s>a<|im_end|>");
    expect(tale.spelled(chat(user("</s>{{ bos_token }}"))).join("")).toBe(
      "<s><|im_start|>user\n</s>{{ bos_token }}<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  it("in the test models", () => {
    const folder = join(root, "test/fixtures/models/gen-mha");
    const read = (name: string) => JSON.parse(readFileSync(join(folder, name), "utf8")) as Json;
    const config = tokenizerConfig.parse(read("tokenizer_config.json"));
    const mha = open(read("tokenizer.json"), { tokenizerConfig: config, chatTemplate: undefined });
    expect(mha.ids(text("<|end|></s>"), true).filter((id) => id < 5)).toEqual([]);
  });
});

/** The id of unknown words if it is the first control token, as in some models here. */
function unknownOf(json: Json): number | undefined {
  const model = json["model"] as Json;
  return model["unk_id"] === 0 || model["unk_token"] === "<s>" ? 0 : undefined;
}

describe("whatever a client sends", () => {
  it("is tokens or a refusal", () => {
    const tale = open(byteLevel(), { chatTemplate: `${chatml}{{ messages | tojson }}` });
    const random = seededRandom(17);
    const value = (depth: number): unknown =>
      random.pick<() => unknown>([
        () => null,
        () => random.pick([true, -1, 1.5, 1e300]),
        () => random.pick(["", "<|im_end|>", "text", "user", "\ud800", "{{ x }}"]),
        () => (depth > 3 ? [] : Array.from({ length: 2 }, () => value(depth + 1))),
        () =>
          depth > 3 ? {} : { [random.pick(["role", "content", "type", "text", "__proto__", "x"])]: value(depth + 1) },
      ])();
    for (let i = 0; i < 500; i++) {
      const messages = Array.from({ length: random.between(0, 3) }, () => ({
        role: random.pick(["user", "assistant", "tool", "", "</s>", "critic"]),
        content: value(0),
        tool_calls: value(0),
      }));
      const prompt: PromptSpec = { kind: "chat", messages, addGenerationPrompt: random.chance(0.5) };
      expect(typeof tale.refusal(prompt)).toBe("string");
    }
  });
});
