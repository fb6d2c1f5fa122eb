/** Reads a tokenizer.json that has passed the check of its folder (`schema.ts`). */
import { readFileSync } from "node:fs";
import type { TokenizerJson } from "./schema.js";

/** @throws Error with a sentence for the operator, which names no path */
export function readTokenizerJson(file: string): TokenizerJson {
  try {
    return JSON.parse(new TextDecoder().decode(readFileSync(file))) as TokenizerJson;
  } catch (cause) {
    throw new Error("tokenizer.json cannot be read", { cause });
  }
}

/** @returns the tokens' texts by id, added tokens included; ids may be missing */
export function textsOf({ model: { vocab }, added_tokens }: TokenizerJson): string[] {
  const texts: string[] = [];
  for (const [text, id] of entriesOf(vocab)) texts[id] = text;
  for (const { id, content } of added_tokens ?? []) texts[id] = content;
  return texts;
}

/** @throws Error if the vocabulary holds an element that is no token with an id */
export function entriesOf(vocab: TokenizerJson["model"]["vocab"]): [text: string, id: number][] {
  const entries = Array.isArray(vocab)
    ? vocab.map((piece, id): [unknown, unknown] => [Array.isArray(piece) ? piece[0] : undefined, id])
    : Object.entries(vocab);
  for (const [text, id] of entries) {
    if (typeof text !== "string" || !Number.isSafeInteger(id) || Number(id) < 0 || Number(id) > MAX_ID) {
      throw new Error("tokenizer.json: model.vocab holds something that is no token");
    }
  }
  return entries as [string, number][];
}

/** Larger than any vocabulary. Bounds the list of texts by id, which must fit into memory. */
const MAX_ID = 10_000_000;
