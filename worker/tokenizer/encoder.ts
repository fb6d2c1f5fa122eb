/**
 * Text to tokens, in Hugging Face's order: added tokens are cut out, the rest is normalised, split into words, and each word becomes tokens. Normalisers and splitters
 * are the library's.
 */
import { AddedTokens } from "./added-tokens.js";
import { openLibrary, type Library } from "./library.js";
import type { AddedToken, TokenizerJson } from "./schema.js";
import { entriesOf } from "./tokenizer-json.js";
import { openWords, type Words } from "./words.js";

/** No script needs so many combining marks in a row, and normalisation takes quadratic time to order them. */
const LONGEST_RUN_OF_MARKS = /\p{M}{256}/gu;

/** In no text: lone surrogates are replaced before. */
const CUT = "\ud800";

export class Encoder {
  /** As the tokenizer itself would put around a text. */
  private readonly before: readonly number[];
  private readonly after: readonly number[];
  private readonly library: Library;
  private readonly words: Words;
  /** Found in the text as it is, and in normalised text. */
  private readonly first: AddedTokens;
  private readonly second: AddedTokens;
  private readonly wordStart: RegExp | undefined;

  /** @throws Error when the tokenizer cannot be used */
  constructor(json: TokenizerJson, control: readonly AddedToken[]) {
    const controlIds = new Set(control.map(({ id }) => id));
    const { normalizer = null, pre_tokenizer = null, post_processor = null } = json;
    this.library = openLibrary({ normalizer, pre_tokenizer, post_processor });
    this.words = openWords(json, controlIds);
    const others = (json.added_tokens ?? []).filter(({ id, content }) => !controlIds.has(id) && content !== "");
    const isNormalised = ({ normalized, special }: AddedToken): boolean =>
      normalizer !== null && (normalized ?? !special);
    this.first = new AddedTokens([...control, ...others.filter((token) => !isNormalised(token))]);
    this.second = new AddedTokens(
      others
        .filter(isNormalised)
        .map((token) => ({ ...token, content: this.library.normalizer?.normalize(token.content) ?? token.content })),
    );
    this.wordStart = metaspace(pre_tokenizer);
    const [before = [], after = []] = this.surroundings(json, control);
    this.before = before;
    this.after = after;
  }

  /** @param text with marks where control tokens are not meant. */
  encode(text: string): number[] {
    const ids: number[] = [];
    this.first.split(text).forEach((section, index) => {
      if (section.kind === "token") ids.push(section.token.id);
      else this.encodeText(this.normalise(section.text), index, ids);
    });
    return ids;
  }

  /** What the tokenizer puts before and after a text by itself, such as `<s>`. */
  surround(ids: readonly number[]): number[] {
    return [...this.before, ...ids, ...this.after];
  }

  private encodeText(text: string, sectionIndex: number, ids: number[]): void {
    for (const section of this.second.size === 0 ? [{ kind: "text" as const, text }] : this.second.split(text)) {
      if (section.kind === "token") ids.push(section.token.id);
      else if (section.text !== "") this.words(this.split(section.text, sectionIndex), ids);
    }
  }

  private normalise(text: string): string {
    const { normalizer } = this.library;
    if (normalizer === null || text === "") return text;
    const pieces = text.replace(LONGEST_RUN_OF_MARKS, `$&${CUT}`).split(CUT);
    return pieces.map((piece) => (piece === "" ? "" : normalizer.normalize(piece))).join("");
  }

  private split(text: string, sectionIndex: number): string[] {
    const words = this.library.pre_tokenizer?.pre_tokenize(text, { section_index: sectionIndex }) ?? [text];
    const { wordStart } = this;
    return wordStart === undefined ? words : words.flatMap((word) => word.split(wordStart));
  }

  private surroundings(json: TokenizerJson, control: readonly AddedToken[]): number[][] {
    const tokens = this.library.post_processor?.post_process([CUT], null, true).tokens ?? [CUT];
    const ids = new Map([...entriesOf(json.model.vocab), ...control.map(({ content, id }) => [content, id] as const)]);
    const around: number[][] = [[], []];
    tokens.forEach((token, i) => {
      if (token === CUT) return;
      const id = ids.get(token);
      if (id === undefined) throw new Error(`tokenizer.json: post_processor: '${token}' is not in the vocabulary`);
      around[i < tokens.indexOf(CUT) ? 0 : 1]?.push(id);
    });
    return around;
  }
}

/** The library leaves the split at each space to the model; Hugging Face's own does it here. */
function metaspace(preTokenizer: TokenizerJson["pre_tokenizer"]): RegExp | undefined {
  if (preTokenizer?.type !== "Metaspace" || preTokenizer["split"] === false) return undefined;
  const { replacement } = preTokenizer;
  const space = typeof replacement === "string" && replacement.length === 1 ? replacement : "▁";
  return new RegExp(`(?=${space.replace(/[\\^$.*+?()[\]{}|]/, "\\$&")})`, "u");
}
