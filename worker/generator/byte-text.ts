/**
 * Tokens to text where text is the tokens' bytes in a row, as with byte-level tokenizers: a character is given when its last byte has come, and bytes that are no character as U+FFFD
 * when that is certain. All that it holds are the last bytes, so a stream of any length is gone on with at once.
 */

/** A token's share of the text; none for special ones. */
export type ShownBytes = (token: number) => Uint8Array;

/** A character has no more. */
const MOST_BYTES = 4;

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

export class ByteText {
  private readonly bytesOf: ShownBytes;
  /** How a character begins that is not whole. */
  private open: Uint8Array;
  /** It begins in the prompt: if nothing comes of it, it is not for us to show. */
  private promptOpen: boolean;

  /** @param prompt the tokens before the first one. */
  constructor(bytesOf: ShownBytes, prompt: ArrayLike<number> = []) {
    this.bytesOf = bytesOf;
    this.open = openEnd(this.lastBytes(prompt));
    this.promptOpen = this.open.length > 0;
  }

  /** @returns new text that ends with a whole character; sometimes none. */
  push(token: number): string {
    const bytes = this.bytesOf(token);
    if (bytes.length === 0) return "";
    const all = this.open.length === 0 ? bytes : Buffer.concat([this.open, bytes]);
    this.open = openEnd(all);
    return this.shown(all.subarray(0, all.length - this.open.length));
  }

  /** @returns what is held, at the end: no more will come to complete it. */
  flush(): string {
    const held = this.open;
    this.open = new Uint8Array(0);
    return this.shown(held);
  }

  /** As if these had been pushed. */
  skip(tokens: readonly number[]): void {
    const last = this.lastBytes(tokens);
    if (last.length < MOST_BYTES) {
      for (const token of tokens) this.push(token);
    } else {
      this.open = openEnd(last);
      this.promptOpen = false;
    }
  }

  private shown(bytes: Uint8Array): string {
    if (bytes.length === 0) return "";
    const text = utf8.decode(bytes);
    const foreign = this.promptOpen && text.startsWith("\ufffd");
    this.promptOpen = false;
    return foreign ? text.slice(1) : text;
  }

  /** Enough of them to tell what is open; all, if they are fewer. */
  private lastBytes(tokens: ArrayLike<number>): Uint8Array {
    let last: Uint8Array = new Uint8Array(0);
    for (let i = tokens.length - 1; i >= 0 && last.length < MOST_BYTES; i--) {
      last = Buffer.concat([this.bytesOf(tokens[i] as number), last]);
    }
    return last;
  }
}

/** @returns the beginning of a character with which `bytes` end, if they do: what the Encoding Standard's decoder would wait with. */
function openEnd(bytes: Uint8Array): Uint8Array {
  for (let back = 1; back < MOST_BYTES && back <= bytes.length; back++) {
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

/** How many bytes a character has that begins with this one; 1 for what begins none. */
function lengthOf(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 1;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/** What may follow, so that there are no overlong forms, no surrogates, and nothing past U+10FFFF. */
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
