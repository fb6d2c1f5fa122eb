/** A request that fits a model's inputs, with values drawn at random. */
import type { ModelMetadata } from "../../gateway/answers.js";

type Spec = ModelMetadata["inputs"][number];

export interface Tensor {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
  readonly data: readonly (number | boolean | string)[];
}

/** More elements are a burden to read, so a dimension of any size becomes 1. */
const ANY = 1;
/** Larger inputs are filled with zeros, because nobody reads so many values. */
const MOST_DRAWN = 4_096;

/** @param random gives a number from 0 to 1 */
export function fill({ name, datatype, shape }: Spec, random: () => number): Tensor {
  const sizes = shape.map((size) => (size < 0 ? ANY : size));
  const count = sizes.reduce((product, size) => product * size, 1);
  const draw = count > MOST_DRAWN ? () => 0 : random;
  return { name, datatype, shape: sizes, data: Array.from({ length: count }, () => valueOf(datatype, draw())) };
}

function valueOf(datatype: string, drawn: number): number | boolean | string {
  if (datatype === "BOOL") return drawn >= 0.5;
  if (datatype === "BYTES") return `text ${Math.floor(drawn * 100)}`;
  if (/INT/.test(datatype)) return Math.floor(drawn * 100);
  return Math.round((drawn * 2 - 1) * 1_000) / 1_000;
}

/** @returns the tensors in JSON: a line for each description, and one for its values */
export function tensorsText(tensors: readonly Tensor[]): string {
  const shown = tensors.map(({ name, datatype, shape, data }) => {
    const head = `"name": ${JSON.stringify(name)}, "datatype": ${JSON.stringify(datatype)}, "shape": [${shape.join(", ")}]`;
    return `  {${head},\n   "data": [${data.map((value) => JSON.stringify(value)).join(", ")}]}`;
  });
  return `[\n${shown.join(",\n")}\n]`;
}
