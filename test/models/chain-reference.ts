/** What the models `chain`, `slow-sequence` and `pill` compute; the formula is in infra/models/chain/make.py. */

const SEED = 0x243f6a8885a308d3n;
const A = 6364136223846793005n;
const K = 0x9e3779b97f4a7c15n;
const C = 1442695040888963407n;
const ROTATE = 23n;

/** The input that makes the model `pill` take its whole process down with SIGFPE. */
export const POISON_INPUT = 666666n;

/** The state, and output, after one more input; a state of null is the start of a sequence. */
export function chainStep(state: bigint | null, input: bigint): bigint {
  const x = BigInt.asUintN(64, (state ?? SEED) * A + input * K + C);
  return BigInt.asIntN(64, (x << ROTATE) | (x >> (64n - ROTATE)));
}
