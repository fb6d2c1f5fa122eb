/** Tokenizers small enough to check by hand, in the shapes that models bring: byte-level, sentencepiece with bytes, Unigram. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Json = Readonly<Record<string, unknown>>;

export interface Added {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
  readonly normalized?: boolean;
}

/** GPT-2's order: printable bytes stand for themselves, the others follow from U+0100 on. */
const alphabet: readonly string[] = (() => {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    return String.fromCharCode(printable ? byte : next++);
  });
})();

export const controls: readonly Added[] = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"].map((content, id) => ({
  id,
  content,
  special: true,
  normalized: false,
}));

function vocabulary(tokens: readonly string[], merges: readonly (readonly [string, string])[]): Record<string, number> {
  const vocab: Record<string, number> = {};
  for (const token of [...tokens, ...merges.map(([a, b]) => a + b)]) vocab[token] ??= Object.keys(vocab).length;
  return vocab;
}

/** Ids: 0 to 3 control tokens, then the 256 bytes, then what is merged. */
export function byteLevel(added: readonly Added[] = [], over: Json = {}): Json {
  const merges = [
    ["t", "h"],
    ["th", "e"],
    ["Ġ", "the"],
    ["l", "l"],
    ["e", "ll"],
    ["h", "ell"],
    ["i", "m"],
    ["Ġ", "Ġ"],
  ] as const;
  const vocab = vocabulary([...controls.map(({ content }) => content), ...alphabet], merges);
  return {
    version: "1.0",
    added_tokens: [...controls, ...added],
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: {
      type: "TemplateProcessing",
      single: [{ SpecialToken: { id: "<s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
      pair: [],
      special_tokens: { "<s>": { id: "<s>", ids: [0], tokens: ["<s>"] } },
    },
    decoder: { type: "ByteLevel" },
    model: { type: "BPE", unk_token: null, vocab, merges },
    ...over,
  };
}

/** As Llama 2's: spaces are ▁, what is unknown is spelled in bytes. */
export function sentencePiece(added: readonly Added[] = [], over: Json = {}): Json {
  const merges = [
    ["▁", "t"],
    ["h", "e"],
    ["▁t", "he"],
    ["▁", "h"],
    ["l", "l"],
  ] as const;
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
  const letters = ["▁", ...Array.from("abcdefghijklmnopqrstuvwxyz<>|/_.")];
  const vocab = vocabulary([...controls.map(({ content }) => content), ...bytes, ...letters], merges);
  return {
    version: "1.0",
    added_tokens: [...controls, ...added],
    normalizer: {
      type: "Sequence",
      normalizers: [
        { type: "Prepend", prepend: "▁" },
        { type: "Replace", pattern: { String: " " }, content: "▁" },
      ],
    },
    pre_tokenizer: null,
    post_processor: null,
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: "▁" }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        { type: "Strip", content: " ", start: 1, stop: 0 },
      ],
    },
    model: { type: "BPE", unk_token: "<s>", byte_fallback: true, fuse_unk: true, vocab, merges },
    ...over,
  };
}

/** Its vocabulary holds the control tokens as pieces that win wherever they are found. */
export function unigram(added: readonly Added[] = [], over: Json = {}): Json {
  const pieces = ["▁", ...Array.from("abcdefghijklmnopqrstuvwxyz<>|/_"), "▁the", "he", "ll", "im"];
  return {
    version: "1.0",
    added_tokens: [...controls, ...added],
    normalizer: null,
    pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "first", split: true },
    post_processor: null,
    decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "first" },
    model: {
      type: "Unigram",
      unk_id: 0,
      vocab: [...controls.map(({ content }) => [content, 0]), ...pieces.map((piece) => [piece, -piece.length])],
    },
    ...over,
  };
}

/** @returns the file's path. */
export function writeTokenizer(json: unknown): string {
  const file = join(mkdtempSync(join(tmpdir(), "baton-tokenizer-")), "tokenizer.json");
  writeFileSync(file, typeof json === "string" ? json : JSON.stringify(json));
  return file;
}
