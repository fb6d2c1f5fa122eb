/**
 * Compares answers while the clock runs: a few elements of each, and all elements of every
 * sixteenth.
 */
const RELATIVE = 1e-4;
/** Near zero, relative differences say nothing. */
const ABSOLUTE = 1e-6;
const SAMPLES = 8;
const FULL_EVERY = 16;

export class AnswerCheck {
  checked = 0;
  wrong = 0;
  readonly #expected: Float32Array;
  readonly #size: number;

  constructor(expected: Float32Array, size: number) {
    this.#expected = expected;
    this.#size = size;
  }

  /**
   * @param read gives the answer's i-th element
   * @param at offset of the expected answer
   */
  check(read: (index: number) => number, at: number): void {
    const stride = this.checked++ % FULL_EVERY === 0 ? 1 : this.#size / SAMPLES;
    for (let i = stride - 1; i < this.#size; i += stride) {
      const wanted = this.#expected[at + i] ?? Number.NaN;
      // Written so that a NaN on either side is wrong.
      if (!(Math.abs(read(i) - wanted) <= RELATIVE * Math.abs(wanted) + ABSOLUTE)) {
        this.wrong++;
        return;
      }
    }
  }
}
