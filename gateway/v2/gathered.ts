/**
 * Pieces of a body, put together as they come. All but a first one that is not tiny are copied at
 * once: held, a piece of one byte takes hundreds, and large ones would lie in memory twice at the
 * end.
 */
const tinyBytes = 512;
const largeBytes = 1024 * 1024;
/** Memory of that size which was not written to takes none yet, so large steps cost nothing. */
const largeGrowth = 8;
const growth = 2;

export class Gathered {
  length = 0;
  readonly #expected: number;
  /** What there is so far, at the beginning of memory for more. */
  #whole: Buffer = Buffer.alloc(0);

  /** @param expected the length as declared, or the most that there may be; never exceeded */
  constructor(expected: number) {
    this.#expected = expected;
  }

  add(piece: Buffer): void {
    const length = this.length + piece.length;
    if (this.length === 0 && piece.length >= tinyBytes) this.#whole = piece;
    else {
      if (length > this.#whole.length) this.#enlarge(length);
      piece.copy(this.#whole, this.length);
    }
    this.length = length;
  }

  bytes(): Buffer {
    return this.#whole.subarray(0, this.length);
  }

  #enlarge(needed: number): void {
    const wished = needed * (needed < largeBytes ? growth : largeGrowth);
    const whole = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(this.#expected, wished)));
    this.#whole.copy(whole, 0, 0, this.length);
    this.#whole = whole;
  }
}
