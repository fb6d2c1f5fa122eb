/**
 * Turns tokens into text for byte-level tokenizers, whose text is the bytes of the tokens in a row.
 * A character comes out with its last byte. Bytes that certainly form no character come out as
 * U+FFFD. The class holds only the last bytes, so a worker takes over a stream of any length at
 * once.
 */

/** @returns the bytes that a token adds to the text; none for special tokens */
export type ShownBytes = (token: number) => Uint8Array;

/** The most bytes of a character in UTF-8. */
const MAX_BYTES = 4;

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

export class ByteText {
  private readonly bytesOf: ShownBytes;
  /** The first bytes of a character that is not whole yet. */
  private open: Uint8Array;
  /**
   * Whether that character begins in the prompt. If the character stays incomplete, the output does
   * not show its bytes.
   */
  private promptOpen: boolean;

  /** @param prompt ids of the tokens before the first output token */
  constructor(bytesOf: ShownBytes, prompt: ArrayLike<number> = []) {
    this.bytesOf = bytesOf;
    this.open = openEnd(this.lastBytes(prompt));
    this.promptOpen = this.open.length > 0;
  }

  /** @returns the new text, which ends with a whole character and may be empty */
  push(token: number): string {
    const bytes = this.bytesOf(token);
    if (bytes.length === 0) return "";
    const all = this.open.length === 0 ? bytes : Buffer.concat([this.open, bytes]);
    this.open = openEnd(all);
    return this.shown(all.subarray(0, all.length - this.open.length));
  }

  /** @returns the held bytes as text, at the end of the text, because no more bytes will come */
  flush(): string {
    const held = this.open;
    this.open = new Uint8Array(0);
    return this.shown(held);
  }

  /** Has the effect of pushing these tokens, but gives no text. */
  skip(tokens: readonly number[]): void {
    const last = this.lastBytes(tokens);
    if (last.length < MAX_BYTES) {
      for (const token of tokens) this.push(token);
    } else {
      this.open = openEnd(last);
      this.promptOpen = false;
    }
  }

  /** @returns bytes as text, without the U+FFFD of a character that the prompt began */
  private shown(bytes: Uint8Array): string {
    if (bytes.length === 0) return "";
    const text = utf8.decode(bytes);
    const foreign = this.promptOpen && text.startsWith("\ufffd");
    this.promptOpen = false;
    return foreign ? text.slice(1) : text;
  }

  /**
   * @returns the last bytes of the tokens, enough to identify the open character; all bytes if
   *   there are fewer
   */
  private lastBytes(tokens: ArrayLike<number>): Uint8Array {
    let last: Uint8Array = new Uint8Array(0);
    for (let i = tokens.length - 1; i >= 0 && last.length < MAX_BYTES; i--) {
      last = Buffer.concat([this.bytesOf(tokens[i] as number), last]);
    }
    return last;
  }
}

/**
 * @returns the bytes of an unfinished character at the end of `bytes`; empty if there is none. With
 *   these bytes a decoder of the Encoding Standard would wait for more.
 */
function openEnd(bytes: Uint8Array): Uint8Array {
  for (let back = 1; back < MAX_BYTES && back <= bytes.length; back++) {
    const lead = bytes[bytes.length - back] as number;
    if (isContinuation(lead)) continue;
    const [least, most] = secondByte(lead);
    const second = back === 1 ? least : (bytes[bytes.length - back + 1] as number);
    const goesOn = back < lengthOf(lead) && second >= least && second <= most;
    return goesOn ? bytes.subarray(bytes.length - back) : bytes.subarray(bytes.length);
  }
  return bytes.subarray(bytes.length);
}

function isContinuation(byte: number): boolean {
  return byte >= 0x80 && byte < 0xc0;
}

/**
 * @returns the number of bytes of a character that begins with this byte; 1 if no character does
 */
function lengthOf(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 1;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/**
 * @returns the range of bytes that may follow this byte: without overlong forms, surrogates, and
 *   numbers beyond U+10FFFF
 */
function secondByte(lead: number): readonly [least: number, most: number] {
  switch (lead) {
    case 0xe0:
      return [0xa0, 0xbf];
    case 0xed:
      return [0x80, 0x9f];
    case 0xf0:
      return [0x90, 0xbf];
    case 0xf4:
      return [0x80, 0x8f];
    default:
      return [0x80, 0xbf];
  }
}
