/**
 * Says whether the numbers that a GPU computed agree with the CPU's. Their sums differ by rounding,
 * so a float may differ by a share of the tensor's largest number. All other elements must be
 * equal.
 */
import type { Datatype } from "#shared/model/datatype.js";
import { floatsOfHalves } from "./half-floats.js";

/**
 * Default tolerances: the share of a tensor's largest number by which a GPU may differ. On
 * SwiftShader the models of the tests differ by up to 0.0003.
 */
export const tolerances = {
  tensor: 0.001,
  /** Half precision has 11 bits, so rounding alone is up to 0.0005 of a number. */
  half: 0.01,
  /** Quantised language models reach 0.02. */
  logits: 0.05,
} as const;

/** In a tensor whose numbers are all smaller, tolerances are a share of this number instead. */
const SMALL = 0.001;

/** A tensor in a frame or in a model's thread, with little-endian elements. */
export interface ComparedTensor {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/**
 * @param tolerance a share of the tensor's largest number; undefined for the datatype's default
 * @returns undefined if they agree, otherwise their difference, as the end of a sentence
 */
export function tensorDisagreement(
  found: ComparedTensor,
  expected: ComparedTensor,
  tolerance: number | undefined,
): string | undefined {
  const { name, datatype, shape } = expected;
  if (found.datatype !== datatype || found.shape.join() !== shape.join()) {
    return `'${name}' is ${found.datatype} [${found.shape.join()}] instead of ${datatype} [${shape.join()}]`;
  }
  const [ours, theirs] = [numbersOf(found), numbersOf(expected)];
  if (ours === undefined || theirs === undefined) {
    return Buffer.compare(found.data, expected.data) === 0 ? undefined : `'${name}' has other elements`;
  }
  return numberDisagreement(
    name,
    ours,
    theirs,
    tolerance ?? (datatype === "FP16" ? tolerances.half : tolerances.tensor),
  );
}

/** The same for numbers of one tensor. */
export function numberDisagreement(
  name: string,
  found: Float32Array | Float64Array,
  expected: Float32Array | Float64Array,
  tolerance: number,
): string | undefined {
  let largest = SMALL;
  for (const value of expected) if (Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
  for (const [i, value] of expected.entries()) {
    const one = found[i] ?? Number.NaN;
    // Two NaNs are alike, and so are two infinities of one sign, whose difference is NaN.
    if (Object.is(one, value) || Math.abs(one - value) <= tolerance * largest) continue;
    return `element ${i} of '${name}' is ${one} instead of ${value}, where at most ${tolerance} of the largest one, ${largest}, is allowed`;
  }
  return found.length === expected.length
    ? undefined
    : `'${name}' has ${found.length} elements, not ${expected.length}`;
}

/** @returns undefined if the elements are whole numbers, truth values or strings */
function numbersOf({ datatype, data }: ComparedTensor): Float32Array | Float64Array | undefined {
  // A copy, because views of memory need not begin at a multiple of the element's size.
  const { buffer } = Uint8Array.from(data);
  if (datatype === "FP32") return new Float32Array(buffer);
  if (datatype === "FP64") return new Float64Array(buffer);
  if (datatype === "FP16") return floatsOfHalves(new Uint16Array(buffer));
  return undefined;
}
