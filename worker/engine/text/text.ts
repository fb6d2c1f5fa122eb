/**
 * Turns tokens into text, one token at a time. The text of a token may depend on the token before
 * it (the leading space of sentencepiece), and a character may need several tokens (an emoji in
 * bytes). So a small window of tokens is decoded anew with every token, and what its text has grown
 * by is new. vLLM and TGI do the same.
 */

import { ByteText, type ShownBytes } from "./byte-text.js";

/** What the engine needs of a tokenizer. */
export interface TextOf {
  /**
   * Called with at least one token. Special tokens give no text, and no spaces are cleaned up: the
   * text must not change when more tokens follow.
   */
  decode(tokens: readonly number[]): string;
  /** @returns the bytes of a token by itself; those of its name for a special token */
  bytesOf(token: number): Uint8Array;
  /** Present only where the text is the bytes of the tokens in a row. */
  readonly shownBytes?: ShownBytes;
}

export type GrowingText = Pick<ByteText, "push" | "flush" | "skip">;

/** @param prompt ids of the tokens before the first one */
export function growingText(text: TextOf, prompt: ArrayLike<number>): GrowingText {
  return text.shownBytes === undefined ? new TokenText(text, prompt) : new ByteText(text.shownBytes, prompt);
}

/** What decoders give for bytes that are no character, or none yet. */
const REPLACEMENT = "\ufffd";
/**
 * Most tokens whose text is held back. A character has at most 4 bytes, so more tokens complete
 * none.
 */
const MAX_HELD = 8;
/** How many tokens of the prompt are decoded with the first one. The number is vLLM's. */
const CONTEXT = 5;

export class TokenText implements GrowingText {
  private readonly text: TextOf;
  /**
   * First come tokens whose text has been given out and that only shape the text of the next one,
   * then `held` tokens whose text has not.
   */
  private window: number[];
  private held = 0;
  /** The text of the first part of the window. */
  private shown: string;

  /**
   * @param prompt ids of the tokens before the first one; they tell whether that one begins a word
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
      // A run of tokens without text, such as special ones: they leave the window, which ends with
      // the tokens that shape the next one.
      else if (this.held > MAX_HELD) this.restart(this.window.slice(0, -this.held), 0);
      return fresh;
    }
    return this.held > MAX_HELD ? this.giveUp(text, fresh) : "";
  }

  /** @returns what is still held, at the end of the text: nothing will come to complete it */
  flush(): string {
    const text = this.decode(this.window);
    const fresh = text.slice(commonLength(text, this.shown));
    this.restart(this.window.slice(-Math.max(this.held, 1)), 0);
    return fresh;
  }

  /**
   * Does what pushing these tokens would do, but gives no text. All are pushed, since the tokens
   * that shape the text of the next one may lie far back.
   */
  skip(tokens: readonly number[]): void {
    for (const token of tokens) this.push(token);
  }

  /**
   * Gives out what is held after too many tokens for one character: only the bytes behind the last
   * U+FFFD may still become one.
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
 * @returns how much of `text` was shown before: all of `shown`, unless more tokens have changed the
 * text of fewer. Never half a character
 */
function commonLength(text: string, shown: string): number {
  if (text.startsWith(shown)) return shown.length;
  let length = 0;
  while (length < text.length && text[length] === shown[length]) length++;
  return /[\ud800-\udbff]$/.test(text.slice(0, length)) ? length - 1 : length;
}
