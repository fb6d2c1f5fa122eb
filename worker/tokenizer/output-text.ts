/**
 * Turns tokens back into text, on the engine's thread instead of the tokenizer's. This needs only
 * the vocabulary and the decoder of tokenizer.json, no merges.
 */
import { openLibrary } from "./library.js";
import type { TokenizerJson } from "./schema.js";
import { readTokenizerJson, textsOf } from "./tokenizer-json.js";

export interface OutputText {
  /**
   * Special tokens give no text. The decoder cleans up no spaces, because the text must not change
   * when more tokens follow.
   */
  decode(ids: readonly number[]): string;
  /** The bytes of a token by itself; none for an id without a token. */
  bytesOf(id: number): Uint8Array;
  /**
   * A token's part of the text; no bytes for a special token. Absent unless a text is simply the
   * bytes of its tokens in a row.
   */
  readonly shownBytes?: (id: number) => Uint8Array;
}

/** @throws Error if the tokenizer is unusable; the message names no path */
export function openText(tokenizerFile: string): OutputText {
  const json = readTokenizerJson(tokenizerFile);
  const texts = textsOf(json);
  const added = json.added_tokens ?? [];
  const special = new Set(added.filter((token) => token.special).map(({ id }) => id));
  const addedIds = new Set(added.map(({ id }) => id));
  const byteLevel = isByteLevel(json.decoder);
  const bytesById: Uint8Array[] = [];

  const bytesOf = (id: number): Uint8Array => {
    const text = texts[id] ?? "";
    return (bytesById[id] ??= addedIds.has(id) ? Buffer.from(text) : bytesOfToken(text, byteLevel));
  };

  if (byteLevel) {
    const shownBytes = (id: number): Uint8Array => (special.has(id) ? NOTHING : bytesOf(id));
    return { bytesOf, shownBytes, decode: (ids) => utf8.decode(Buffer.concat(ids.map(shownBytes))) };
  }
  const decodeTexts = textDecoder(json);
  return {
    bytesOf,
    decode(ids) {
      const shown = ids.filter((id) => !special.has(id) && texts[id] !== undefined);
      return shown.length === 0 ? "" : decodeTexts(shown.map((id) => texts[id] ?? ""));
    },
  };
}

const NOTHING = new Uint8Array(0);

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

function bytesOfToken(text: string, byteLevel: boolean): Uint8Array {
  const bytes = byteLevel ? bytesOfByteLevel(text) : undefined;
  if (bytes !== undefined) return bytes;
  const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(text)?.[1];
  if (byte !== undefined) return Uint8Array.of(Number.parseInt(byte, 16));
  return Buffer.from(text.replaceAll("▁", " "));
}

/**
 * With such a decoder, a text is the bytes of its tokens in a row. This needs no library. The
 * library's decoder would search all added tokens for each token.
 */
function isByteLevel(decoder: TokenizerJson["decoder"]): boolean {
  if (decoder?.type === "ByteLevel") return true;
  const parts = decoder?.type === "Sequence" ? decoder["decoders"] : undefined;
  return Array.isArray(parts) && parts.length > 0 && parts.every((part) => isByteLevel(part as typeof decoder));
}

/** @returns a function that joins tokens with the library's decoder */
function textDecoder({ decoder, model }: TokenizerJson): (tokens: string[]) => string {
  const suffix = model["end_of_word_suffix"];
  const library = openLibrary({ decoder }).decoder;
  return (tokens) => {
    const text = library === null ? tokens.join(" ") : library.decode(tokens);
    return typeof suffix === "string" && suffix !== "" ? text.replaceAll(suffix, " ") : text;
  };
}

/** The bytes that GPT-2's alphabet writes as themselves: printable characters of Latin-1. */
const printable = [
  [0x21, 0x7e],
  [0xa1, 0xac],
  [0xae, 0xff],
] as const;

const characters: string[] = [];

/**
 * GPT-2's alphabet, which maps each of the 256 characters to its byte. Byte-level tokenizers write
 * each byte as one printable character, so that a vocabulary is text.
 */
const byteOfCharacter: ReadonlyMap<string, number> = (() => {
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const itself = printable.some(([from, to]) => byte >= from && byte <= to);
    characters.push(String.fromCharCode(itself ? byte : next++));
  }
  return new Map(characters.map((character, byte) => [character, byte]));
})();

/** @returns the bytes of a token; undefined if a character is not in that alphabet */
function bytesOfByteLevel(token: string): Uint8Array | undefined {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = byteOfCharacter.get(token.charAt(i));
    if (byte === undefined) return undefined;
    bytes[i] = byte;
  }
  return bytes;
}
