/**
 * Turns tokens into text, one token at a time. The text of a token may depend on the token before
 * (the leading space of sentencepiece), and a character may need several tokens (an emoji in
 * bytes). So every token decodes a small window of tokens again, and the growth of the window's
 * text is the new text. vLLM and TGI do the same.
 */

import { ByteText, type ShownBytes } from "./byte-text.js";

/** The engine's view of a tokenizer. */
export interface TextOf {
  /**
   * Decodes at least one token. Special tokens give no text. The decoder does not clean up spaces,
   * because later tokens must not change the text.
   */
  decode(tokens: readonly number[]): string;
  /** @returns the bytes of a single token; for a special token, the bytes of its name */
  bytesOf(token: number): Uint8Array;
  /** Present only if the text is the bytes of the tokens in a row. */
  readonly shownBytes?: ShownBytes;
}

export type GrowingText = Pick<ByteText, "push" | "flush" | "skip">;

/** @param prompt ids of the tokens before the first output token */
export function growingText(text: TextOf, prompt: ArrayLike<number>): GrowingText {
  return text.shownBytes === undefined ? new TokenText(text, prompt) : new ByteText(text.shownBytes, prompt);
}

/** The decoders' text for bytes that form no character, or none yet. */
const REPLACEMENT = "\ufffd";
/**
 * Most tokens whose text `push` holds back. A character has at most 4 bytes, so more tokens
 * complete none.
 */
const MAX_HELD = 8;
/** Tokens of the prompt that are decoded with the first output token. The number is vLLM's. */
const CONTEXT = 5;

export class TokenText implements GrowingText {
  private readonly text: TextOf;
  /**
   * First come tokens whose text is out and that only shape the text of the next token. Then come
   * `held` tokens whose text is not out.
   */
  private window: number[];
  private held = 0;
  /** The text of the first part of the window. */
  private shown: string;

  /**
   * @param prompt ids of the tokens before the first output token, which show whether that token
   *   begins a word
   */
  constructor(text: TextOf, prompt: ArrayLike<number> = []) {
    this.text = text;
    this.window = [];
    for (let i = Math.max(0, prompt.length - CONTEXT); i < prompt.length; i++) this.window.push(prompt[i] as number);
    this.shown = this.decode(this.window);
  }

  /** @returns the new text, which ends with a whole character and is often empty */
  push(token: number): string {
    this.window.push(token);
    this.held++;
    const text = this.decode(this.window);
    const fresh = text.slice(commonLength(text, this.shown));
    if (!fresh.endsWith(REPLACEMENT)) {
      if (fresh !== "") this.restart(this.window.slice(-this.held), 0);
      // A run of tokens without text, such as special tokens, leaves the window. The tokens that
      // shape the next token's text stay there.
      else if (this.held > MAX_HELD) this.restart(this.window.slice(0, -this.held), 0);
      return fresh;
    }
    return this.held > MAX_HELD ? this.giveUp(text, fresh) : "";
  }

  /** @returns the held text, at the end of the text, because no more tokens will come */
  flush(): string {
    const text = this.decode(this.window);
    const fresh = text.slice(commonLength(text, this.shown));
    this.restart(this.window.slice(-Math.max(this.held, 1)), 0);
    return fresh;
  }

  /**
   * Has the effect of pushing these tokens, but gives no text. Pushes all tokens, because those
   * that shape the text of the next token may lie far back.
   */
  skip(tokens: readonly number[]): void {
    for (const token of tokens) this.push(token);
  }

  /**
   * Gives out the held text after too many tokens for one character. Only the bytes behind the last
   * U+FFFD may still become a character.
   */
  private giveUp(text: string, fresh: string): string {
    for (let last = 1; last < this.held; last++) {
      const tail = this.window.slice(-last);
      const tailText = this.decode(tail);
      if (tailText.endsWith(REPLACEMENT) && this.decode(this.window.slice(0, -last)) + tailText === text) {
        this.restart(tail, last, tailText.slice(0, -1));
        return fresh.slice(0, -1);
      }
    }
    this.restart(this.window.slice(-this.held), 0);
    return fresh;
  }

  /** Begins anew with another window. */
  private restart(window: number[], held: number, shown = this.decode(window)): void {
    this.window = window;
    this.held = held;
    this.shown = shown;
  }

  private decode(tokens: readonly number[]): string {
    return tokens.length === 0 ? "" : this.text.decode(tokens);
  }
}

/**
 * @returns the length of the part of `text` that was shown before: all of `shown`, unless more
 *   tokens changed the earlier text. The part never ends within a character.
 */
function commonLength(text: string, shown: string): number {
  if (text.startsWith(shown)) return shown.length;
  let length = 0;
  while (length < text.length && text[length] === shown[length]) length++;
  return /[\ud800-\udbff]$/.test(text.slice(0, length)) ? length - 1 : length;
}
