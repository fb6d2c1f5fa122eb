/**
 * Tokens to text, one token at a time. A token's text may depend on the one before it (sentencepiece's leading space) and a character may need several (an emoji in bytes), so a
 * small window of tokens is decoded anew with every token, and what has grown is new: the method of vLLM and TGI.
 */

import { ByteText, type ShownBytes } from "./byte-text.js";

/** What is needed of a tokenizer. */
export interface TextOf {
  /** Never called without tokens. Special tokens give nothing, and no spaces are cleaned up: text must not change when more follows. */
  decode(tokens: readonly number[]): string;
  /** What the token stands for by itself; of a special token, its name. */
  bytesOf(token: number): Uint8Array;
  /** Only where text is the tokens' bytes in a row. */
  readonly shownBytes?: ShownBytes;
}

export type GrowingText = Pick<ByteText, "push" | "flush" | "skip">;

/** @param prompt the tokens before the first one. */
export function growingText(text: TextOf, prompt: ArrayLike<number>): GrowingText {
  return text.shownBytes === undefined ? new TokenText(text, prompt) : new ByteText(text.shownBytes, prompt);
}

/** U+FFFD: bytes that are no character, or not yet. */
const REPLACEMENT = "\ufffd";
/** Tokens are held for so long at the most; no character has more bytes than 4. */
const MOST_HELD = 8;
/** How many tokens of the prompt are looked at. vLLM's number. */
const CONTEXT = 5;

export class TokenText implements GrowingText {
  private readonly text: TextOf;
  /** Tokens whose text is out and that only shape the next one's, then `held` ones whose text is not. */
  private window: number[];
  private held = 0;
  /** The text of the window's first part. */
  private shown: string;

  /** @param prompt the tokens before the first one: they tell whether it begins a word. */
  constructor(text: TextOf, prompt: ArrayLike<number> = []) {
    this.text = text;
    this.window = [];
    for (let i = Math.max(0, prompt.length - CONTEXT); i < prompt.length; i++) this.window.push(prompt[i] as number);
    this.shown = this.decode(this.window);
  }

  /** @returns new text that ends with a whole character; often none. */
  push(token: number): string {
    this.window.push(token);
    this.held++;
    const text = this.decode(this.window);
    const fresh = text.slice(commonLength(text, this.shown));
    if (!fresh.endsWith(REPLACEMENT)) {
      if (fresh !== "") this.restart(this.window.slice(-this.held), 0);
      // A run of tokens without text, such as special ones: the window still ends with what shapes the next one.
      else if (this.held > MOST_HELD) this.restart(this.window.slice(0, -this.held), 0);
      return fresh;
    }
    return this.held > MOST_HELD ? this.giveUp(text, fresh) : "";
  }

  /** @returns what is held, at the end: no more will come to complete it. */
  flush(): string {
    const text = this.decode(this.window);
    const fresh = text.slice(commonLength(text, this.shown));
    this.restart(this.window.slice(-Math.max(this.held, 1)), 0);
    return fresh;
  }

  /** As if these had been pushed: what shapes the next one's text may reach far back. */
  skip(tokens: readonly number[]): void {
    for (const token of tokens) this.push(token);
  }

  /** Too many tokens for one character: only the bytes behind the last U+FFFD may still become one. */
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

  private restart(window: number[], held: number, shown = this.decode(window)): void {
    this.window = window;
    this.held = held;
    this.shown = shown;
  }

  private decode(tokens: readonly number[]): string {
    return tokens.length === 0 ? "" : this.text.decode(tokens);
  }
}

/** How much of `text` was shown before. All of `shown`, unless more tokens changed what fewer looked like; never half a character. */
function commonLength(text: string, shown: string): number {
  if (text.startsWith(shown)) return shown.length;
  let length = 0;
  while (length < text.length && text[length] === shown[length]) length++;
  return /[\ud800-\udbff]$/.test(text.slice(0, length)) ? length - 1 : length;
}
