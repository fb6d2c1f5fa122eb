/**
 * Random numbers without a state: each number follows from its purpose alone. Thus a worker that
 * takes a request over draws the same tokens as the first worker. This is Philox4x32-10 of Salmon
 * et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
 */

const MULTIPLIER_0 = 0xd2_51_1f_53;
const MULTIPLIER_1 = 0xcd_9e_8d_57;
const WEYL_0 = 0x9e_37_79_b9;
const WEYL_1 = 0xbb_67_ae_85;
const ROUNDS = 10;

/** Memory for one counter, shared by all calls. */
const block = new Uint32Array(4);

/** Turns the counter in `words`, four words of 32 bits, into four random words in place. */
export function philox4x32(words: Uint32Array, key0: number, key1: number): void {
  let [c0 = 0, c1 = 0, c2 = 0, c3 = 0] = words;
  let k0 = key0 >>> 0;
  let k1 = key1 >>> 0;
  for (let round = 0; round < ROUNDS; round++) {
    const high0 = multiplyHigh(MULTIPLIER_0, c0);
    const high1 = multiplyHigh(MULTIPLIER_1, c2);
    const low0 = Math.imul(MULTIPLIER_0, c0) >>> 0;
    const low1 = Math.imul(MULTIPLIER_1, c2) >>> 0;
    c0 = (high1 ^ c1 ^ k0) >>> 0;
    c1 = low1;
    c2 = (high0 ^ c3 ^ k1) >>> 0;
    c3 = low0;
    k0 = (k0 + WEYL_0) >>> 0;
    k1 = (k1 + WEYL_1) >>> 0;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

/**
 * @param seed a whole number below 2^53
 * @param choice index of the choice in the request
 * @param index place of the token in its choice
 * @param draw tells apart the numbers of one token
 * @returns a number in [0, 1), with 53 random bits
 */
export function uniform(seed: number, choice: number, index: number, draw = 0): number {
  block[0] = index;
  block[1] = choice;
  block[2] = draw;
  block[3] = 0;
  philox4x32(block, seed >>> 0, Math.floor(seed / 2 ** 32));
  const [high = 0, low = 0] = block;
  return ((high >>> 5) * 2 ** 26 + (low >>> 6)) / 2 ** 53;
}

/**
 * @returns the upper 32 bits of the product of two unsigned 32-bit numbers. A double holds only 53
 *   bits of such a product.
 */
function multiplyHigh(a: number, b: number): number {
  const a0 = a & 0xff_ff;
  const a1 = a >>> 16;
  const b0 = b & 0xff_ff;
  const b1 = b >>> 16;
  const middle = a1 * b0 + ((a0 * b0) >>> 16);
  const other = a0 * b1 + (middle & 0xff_ff);
  return a1 * b1 + (middle >>> 16) + (other >>> 16);
}
