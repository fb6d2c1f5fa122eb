/** From tokens back to text, for a model's thread: needs the vocabulary and the decoder alone, no merges. */
import { bytesOfByteLevel } from "./byte-level.js";
import { openLibrary } from "./library.js";
import type { TokenizerJson } from "./schema.js";
import { readTokenizerJson, textsOf } from "./tokenizer-json.js";

export interface OutputText {
  /** Special tokens give nothing, and no spaces are cleaned up: text must not change when more follows. */
  decode(ids: readonly number[]): string;
  /** What one token stands for by itself; none for an id without a token. */
  bytesOf(id: number): Uint8Array;
  /** Only where text is the tokens' bytes in a row: a token's share of it, none for special ones. */
  readonly shownBytes?: (id: number) => Uint8Array;
}

/** @throws Error when the tokenizer cannot be used; names no path. */
export function openText(tokenizerFile: string): OutputText {
  const json = readTokenizerJson(tokenizerFile);
  const texts = textsOf(json);
  const added = json.added_tokens ?? [];
  const special = new Set(added.filter((token) => token.special).map(({ id }) => id));
  const addedIds = new Set(added.map(({ id }) => id));
  const byteLevel = isByteLevel(json.decoder);
  const known: Uint8Array[] = [];

  const bytesOf = (id: number): Uint8Array => {
    const text = texts[id] ?? "";
    return (known[id] ??= addedIds.has(id) ? Buffer.from(text) : bytesOfToken(text, byteLevel));
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

/** With these, text is the tokens' bytes in a row, so no library is needed: its decoder looks through all added tokens for each token. */
function isByteLevel(decoder: TokenizerJson["decoder"]): boolean {
  if (decoder?.type === "ByteLevel") return true;
  const parts = decoder?.type === "Sequence" ? decoder["decoders"] : undefined;
  return Array.isArray(parts) && parts.length > 0 && parts.every((part) => isByteLevel(part as typeof decoder));
}

/** The library's decoder; the tokenizer around it is empty. */
function textDecoder({ decoder, model }: TokenizerJson): (tokens: string[]) => string {
  const suffix = model["end_of_word_suffix"];
  const library = openLibrary({ decoder }).decoder;
  return (tokens) => {
    const text = library === null ? tokens.join(" ") : library.decode(tokens);
    return typeof suffix === "string" && suffix !== "" ? text.replaceAll(suffix, " ") : text;
  };
}
