/**
 * The part that tokenizer.json calls `model`: turns words into token ids. No word becomes a control
 * token.
 */
import { BytePairs } from "./bpe.js";
import { openLibrary } from "./library.js";
import type { TokenizerJson } from "./schema.js";
import { entriesOf } from "./tokenizer-json.js";

/** Appends the ids of the words, in order, to `into`. */
export type EncodeWords = (words: readonly string[], into: number[]) => void;

/**
 * Most characters of a word. The encoder splits longer words, because the library's Unigram puts
 * all tokens of a word on the stack.
 */
const LONGEST_WORD = 10_000;

/** A text that no word contains, because lone surrogates have been replaced before. */
const unreachableText = (id: number): string => `\ud800${id}`;

/** @throws Error if the model has an unknown type or an unexpected shape */
export function openWordModel({ model }: TokenizerJson, control: ReadonlySet<number>): EncodeWords {
  const type = model.type ?? ("merges" in model ? "BPE" : "Unigram");
  if (type === "BPE") {
    const pairs = new BytePairs(model, control);
    return (words, into) => {
      for (const word of words) for (const id of pairs.encode(word)) into.push(id);
    };
  }
  if (type === "WordLevel") return wordLevelModel(model, control);
  return type === "WordPiece" || type === "Unigram" ? libraryModel(model, type, control) : unknownType(type);
}

function unknownType(type: string): never {
  throw new Error(`tokenizer.json: the model type '${type}' is not known`);
}

function wordLevelModel(model: TokenizerJson["model"], control: ReadonlySet<number>): EncodeWords {
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

/** Hides the control tokens from the library, and leaves WordPiece and Unigram to it. */
function libraryModel(model: TokenizerJson["model"], type: string, control: ReadonlySet<number>): EncodeWords {
  const rename = (text: string, id: number): string => (control.has(id) ? unreachableText(id) : text);
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
      for (const piece of splitLongWord(word)) {
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

/** @returns the ids of the tokens `<0x00>` to `<0xFF>`; undefined if a token is missing */
function byteTokens(ids: ReadonlyMap<string, number>): number[] | undefined {
  const found = Array.from({ length: 256 }, (_, byte) =>
    ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
  );
  const complete = found.filter((id) => id !== undefined);
  return complete.length === 256 ? complete : undefined;
}

function splitLongWord(word: string): string[] {
  return word.length <= LONGEST_WORD ? [word] : (word.match(new RegExp(`[\\s\\S]{1,${LONGEST_WORD}}`, "gu")) ?? []);
}
