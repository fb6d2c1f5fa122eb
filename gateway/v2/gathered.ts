/**
 * Pieces of a body, put together as they come. What is large is copied at once: held in pieces, it
 * would have to lie in memory twice at its end.
 */
const copyFromBytes = 1024 * 1024;
/** Memory that was not written to takes none yet, so growing in large steps costs nothing. */
const growth = 8;

export class Gathered {
  length = 0;
  readonly #expected: number;
  readonly #pieces: Buffer[] = [];
  #whole: Buffer | undefined;

  /** @param expected the length as declared, or the most that there may be; never exceeded */
  constructor(expected: number) {
    this.#expected = expected;
  }

  add(piece: Buffer): void {
    const length = this.length + piece.length;
    if (length <= copyFromBytes) this.#pieces.push(piece);
    else {
      if (this.#whole === undefined || length > this.#whole.length) this.#enlarge(length);
      piece.copy(this.#whole as Buffer, this.length);
    }
    this.length = length;
  }

  bytes(): Buffer {
    if (this.#whole !== undefined) return this.#whole.subarray(0, this.length);
    return this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces, this.length);
  }

  #enlarge(needed: number): void {
    const whole = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(this.#expected, needed * growth)));
    let at = 0;
    for (const piece of this.#whole === undefined ? this.#pieces : [this.#whole]) at += piece.copy(whole, at);
    this.#pieces.length = 0;
    this.#whole = whole;
  }
}
