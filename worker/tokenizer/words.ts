/** The model inside a tokenizer: words to ids. No word becomes a control token. */
import { BytePairs } from "./bpe.js";
import { openLibrary } from "./library.js";
import type { TokenizerJson } from "./schema.js";
import { entriesOf } from "./tokenizer-json.js";

/** @returns ids of the words in order. */
export type Words = (words: readonly string[], into: number[]) => void;

/** The library's Unigram puts all tokens of a word on the stack. */
const LONGEST_WORD = 10_000;

/** Not to be found in any text: lone surrogates are replaced before. */
const unreachable = (id: number): string => `\ud800${id}`;

/** @throws Error */
export function openWords({ model }: TokenizerJson, control: ReadonlySet<number>): Words {
  const type = model.type ?? ("merges" in model ? "BPE" : "Unigram");
  if (type === "BPE") {
    const pairs = new BytePairs(model, control);
    return (words, into) => {
      for (const word of words) for (const id of pairs.encode(word)) into.push(id);
    };
  }
  if (type === "WordLevel") return wholeWords(model, control);
  return type === "WordPiece" || type === "Unigram" ? libraryWords(model, type, control) : unknownType(type);
}

function unknownType(type: string): never {
  throw new Error(`tokenizer.json: the model type '${type}' is not known`);
}

function wholeWords(model: TokenizerJson["model"], control: ReadonlySet<number>): Words {
  const ids = new Map(entriesOf(model.vocab));
  const unknown = ids.get(String(model["unk_token"]));
  for (const [word, id] of ids) if (control.has(id)) ids.delete(word);
  return (words, into) => {
    for (const word of words) {
      const id = ids.get(word) ?? unknown;
      if (id !== undefined) into.push(id);
    }
  };
}

function libraryWords(model: TokenizerJson["model"], type: string, control: ReadonlySet<number>): Words {
  const rename = (text: string, id: number): string => (control.has(id) ? unreachable(id) : text);
  const entries = entriesOf(model.vocab);
  const renamed = new Map(entries.map(([text, id]) => [text, rename(text, id)]));
  const vocab = Array.isArray(model.vocab)
    ? model.vocab.map((piece, id) => [rename(entries[id]?.[0] ?? "", id), (piece as unknown[])[1]])
    : Object.fromEntries(entries.map(([text, id]) => [rename(text, id), id]));
  const unknownText = typeof model["unk_token"] === "string" ? renamed.get(model["unk_token"]) : undefined;
  const library = openLibrary({ model: { ...model, type, vocab, unk_token: unknownText } }).model;
  const bytes = model["byte_fallback"] === true ? byteTokens(new Map(entries)) : undefined;
  return (words, into) => {
    for (const word of words) {
      for (const piece of pieces(word)) {
        for (const token of library._call([piece])) {
          const id = library.tokens_to_ids.get(token);
          if (id !== undefined && id !== library.unk_token_id) into.push(id);
          else if (bytes !== undefined) for (const byte of Buffer.from(token)) into.push(bytes[byte] ?? 0);
          else if (library.unk_token_id !== undefined) into.push(library.unk_token_id);
        }
      }
    }
  };
}

function byteTokens(ids: ReadonlyMap<string, number>): number[] | undefined {
  const found = Array.from({ length: 256 }, (_, byte) =>
    ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
  );
  const complete = found.filter((id) => id !== undefined);
  return complete.length === 256 ? complete : undefined;
}

function pieces(word: string): string[] {
  return word.length <= LONGEST_WORD ? [word] : (word.match(new RegExp(`[\\s\\S]{1,${LONGEST_WORD}}`, "gu")) ?? []);
}
