/**
 * Encodes a text as tokens, in Hugging Face's order: cuts out added tokens, normalises the rest and
 * splits it into words, and turns each word into tokens. The normalisers and splitters come from
 * `@huggingface/tokenizers`.
 */
import { AddedTokens } from "./added-tokens.js";
import { openLibrary, type Library } from "./library.js";
import type { AddedToken, TokenizerJson } from "./schema.js";
import { entriesOf } from "./tokenizer-json.js";
import { openWordModel, type EncodeWords } from "./word-model.js";

/**
 * Combining marks are normalised in pieces of 256. No script needs so many in a row, and their
 * ordering takes quadratic time.
 */
const LONG_RUN_OF_COMBINING_MARKS = /\p{M}{256}/gu;

/** Occurs in no text for the encoder, because lone surrogates have been replaced before. */
const SEPARATOR = "\ud800";

export class Encoder {
  /** The tokens that the tokenizer itself puts before and after a text. */
  private readonly before: readonly number[];
  private readonly after: readonly number[];
  private readonly library: Library;
  private readonly encodeWords: EncodeWords;
  /** Finds added tokens in the text as it is. */
  private readonly rawMatcher: AddedTokens;
  /** Finds added tokens after normalisation. */
  private readonly normalisedMatcher: AddedTokens;
  /** The places between words; undefined if the library itself finds them. See `metaspaceSplit`. */
  private readonly wordStart: RegExp | undefined;

  /** @throws Error if the tokenizer is unusable */
  constructor(json: TokenizerJson, control: readonly AddedToken[]) {
    const controlIds = new Set(control.map(({ id }) => id));
    const { normalizer = null, pre_tokenizer = null, post_processor = null } = json;
    this.library = openLibrary({ normalizer, pre_tokenizer, post_processor });
    this.encodeWords = openWordModel(json, controlIds);
    const others = (json.added_tokens ?? []).filter(({ id, content }) => !controlIds.has(id) && content !== "");
    const isNormalised = ({ normalized, special }: AddedToken): boolean =>
      normalizer !== null && (normalized ?? !special);
    this.rawMatcher = new AddedTokens([...control, ...others.filter((token) => !isNormalised(token))]);
    this.normalisedMatcher = new AddedTokens(
      others
        .filter(isNormalised)
        .map((token) => ({ ...token, content: this.library.normalizer?.normalize(token.content) ?? token.content })),
    );
    this.wordStart = metaspaceSplit(pre_tokenizer);
    const [before = [], after = []] = this.tokensAround(json, control);
    this.before = before;
    this.after = after;
  }

  /** @param text a text with users' control tokens escaped */
  encode(text: string): number[] {
    const ids: number[] = [];
    this.rawMatcher.split(text).forEach((section, index) => {
      if (section.kind === "token") ids.push(section.token.id);
      else this.encodeText(this.normalise(section.text), index, ids);
    });
    return ids;
  }

  /** Adds the tokenizer's own tokens before and after a text, such as `<s>`. */
  surround(ids: readonly number[]): number[] {
    return [...this.before, ...ids, ...this.after];
  }

  private encodeText(text: string, sectionIndex: number, ids: number[]): void {
    const { normalisedMatcher } = this;
    const sections = normalisedMatcher.size === 0 ? [{ kind: "text" as const, text }] : normalisedMatcher.split(text);
    for (const section of sections) {
      if (section.kind === "token") ids.push(section.token.id);
      else if (section.text !== "") this.encodeWords(this.split(section.text, sectionIndex), ids);
    }
  }

  private normalise(text: string): string {
    const { normalizer } = this.library;
    if (normalizer === null || text === "") return text;
    const pieces = text.replace(LONG_RUN_OF_COMBINING_MARKS, `$&${SEPARATOR}`).split(SEPARATOR);
    return pieces.map((piece) => (piece === "" ? "" : normalizer.normalize(piece))).join("");
  }

  private split(text: string, sectionIndex: number): string[] {
    const words = this.library.pre_tokenizer?.pre_tokenize(text, { section_index: sectionIndex }) ?? [text];
    const { wordStart } = this;
    return wordStart === undefined ? words : words.flatMap((word) => word.split(wordStart));
  }

  /**
   * @returns the post-processor's tokens before a text, and its tokens after a text
   * @throws Error if one of these tokens is not in the vocabulary
   */
  private tokensAround(json: TokenizerJson, control: readonly AddedToken[]): number[][] {
    const tokens = this.library.post_processor?.post_process([SEPARATOR], null, true).tokens ?? [SEPARATOR];
    const ids = new Map([...entriesOf(json.model.vocab), ...control.map(({ content, id }) => [content, id] as const)]);
    const around: number[][] = [[], []];
    tokens.forEach((token, i) => {
      if (token === SEPARATOR) return;
      const id = ids.get(token);
      if (id === undefined) throw new Error(`tokenizer.json: post_processor: '${token}' is not in the vocabulary`);
      around[i < tokens.indexOf(SEPARATOR) ? 0 : 1]?.push(id);
    });
    return around;
  }
}

/**
 * Splits at each space for the pre-tokenizer `Metaspace`. The library leaves this split to the
 * model, but Hugging Face's own tokenizers split before the model.
 * @returns an expression for the places to split at; undefined for other pre-tokenizers
 */
function metaspaceSplit(preTokenizer: TokenizerJson["pre_tokenizer"]): RegExp | undefined {
  if (preTokenizer?.type !== "Metaspace" || preTokenizer["split"] === false) return undefined;
  const { replacement } = preTokenizer;
  const space = typeof replacement === "string" && replacement.length === 1 ? replacement : "▁";
  return new RegExp(`(?=${space.replace(/[\\^$.*+?()[\]{}|]/, "\\$&")})`, "u");
}
