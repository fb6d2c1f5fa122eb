/**
 * Cuts the bytes of a JSONL file into lines. The limit on a line also bounds the memory, because
 * the cutter does not hold a longer line. Lines may end with CR LF, the last line with nothing, and
 * a byte order mark may come first.
 */

export interface Line {
  /** Counted from 1, blank lines included. */
  readonly number: number;
  /** The byte of the file at which the next line begins. */
  readonly end: number;
  /** Without the line feed; undefined for a line that is longer than the limit. */
  readonly bytes: Buffer | undefined;
}

/** A place between two lines of a file. */
export interface LinePlace {
  /** The byte at which the next line begins. */
  readonly offset: number;
  /** How many lines come before. */
  readonly line: number;
}

const LINE_FEED = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

export class LineCutter {
  readonly #mostBytes: number;
  #number: number;
  /** Offset in the file of the next byte to push. */
  #at: number;
  /** The pieces of the line that has begun. */
  #pieces: Buffer[] = [];
  #length = 0;

  /** @param from the place in the file of the first byte to push */
  constructor(from: LinePlace, mostBytes: number) {
    this.#mostBytes = mostBytes;
    this.#number = from.line;
    this.#at = from.offset;
  }

  /** How many lines have ended so far, blank lines included. */
  get count(): number {
    return this.#number;
  }

  /** @returns the lines that end in this piece of the file, without blank lines */
  push(chunk: Buffer): Line[] {
    const lines: Line[] = [];
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
      if (end === from && this.#length === 0) {
        // Files may have very many blank lines.
        this.#number++;
        from++;
        continue;
      }
      this.#hold(chunk.subarray(from, end));
      from = end + 1;
      this.#cut(this.#at + from, lines);
    }
    this.#hold(chunk.subarray(from));
    this.#at += chunk.length;
    return lines;
  }

  /**
   * Call this after the last piece.
   * @returns the last line, if it has no line feed
   */
  end(): Line[] {
    const lines: Line[] = [];
    if (this.#length > 0) this.#cut(this.#at, lines);
    return lines;
  }

  #hold(piece: Buffer): void {
    this.#length += piece.length;
    if (this.#length > this.#mostBytes) this.#pieces = [];
    else if (piece.length > 0) this.#pieces.push(piece);
  }

  #cut(end: number, lines: Line[]): void {
    this.#number++;
    const number = this.#number;
    const whole = this.#pieces.length === 1 ? (this.#pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#pieces);
    const bytes = number === 1 && startsWithMark(whole) ? whole.subarray(BYTE_ORDER_MARK.length) : whole;
    if (this.#length > this.#mostBytes) lines.push({ number, end, bytes: undefined });
    else if (!isBlank(bytes)) lines.push({ number, end, bytes });
    this.#pieces = [];
    this.#length = 0;
  }
}

function startsWithMark(bytes: Buffer): boolean {
  return bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
}

/** JSON's own white space, which includes the CR of a line that ends with CR LF. */
function isBlank(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  return true;
}
