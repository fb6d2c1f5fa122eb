/**
 * Turns a tensor's shape from the clients' into the graph's and back, for a model whose
 * configuration has `reshape`. The elements stay as they are. A number for each row, which clients
 * know as dims [1], needs no reshape here (`Layout.bare` in stack.ts).
 */
import type { ModelConfig } from "#shared/model/config.js";

/** The shapes before and after, without the batch dimension; -1 is a variable size. */
export interface Reshape {
  readonly from: readonly number[];
  readonly to: readonly number[];
}

/** By the names of tensors. */
export type Reshapes = ReadonlyMap<string, Reshape>;

export interface ModelReshapes {
  readonly inputs: Reshapes;
  readonly outputs: Reshapes;
}

/** @returns undefined for a model without reshapes */
export function reshapesOf({ input, output }: Pick<ModelConfig, "input" | "output">): ModelReshapes | undefined {
  const of = (tensors: readonly (ModelConfig["input"][number] | ModelConfig["output"][number])[]) =>
    tensors.flatMap(({ name, dims, reshape }) =>
      reshape === undefined || reshape.shape.length === 0 ? [] : [{ name, dims, shape: reshape.shape }],
    );
  const inputs = new Map(of(input).map(({ name, dims, shape }) => [name, { from: dims, to: shape }]));
  const outputs = new Map(of(output).map(({ name, dims, shape }) => [name, { from: shape, to: dims }]));
  return inputs.size + outputs.size === 0 ? undefined : { inputs, outputs };
}

/**
 * Variable sizes keep their order: the first of `from` becomes the first of `to`. The check of the
 * configuration has made sure that the fixed sizes between them have equal products.
 *
 * @param rows whether the shape begins with the rows of a batch
 * @throws RangeError if the shape is not one of `from`
 */
export function reshaped(shape: readonly number[], { from, to }: Reshape, rows: boolean): number[] {
  const own = rows ? shape.slice(1) : shape;
  if (own.length !== from.length || own.some((size, axis) => from[axis] !== -1 && from[axis] !== size)) {
    throw new RangeError(`the shape [${own.join(",")}] is not the [${from.join(",")}] that is to be reshaped`);
  }
  const variable = own.filter((_, axis) => from[axis] === -1).values();
  const after = to.map((size) => (size === -1 ? (variable.next().value ?? 0) : size));
  return [...(rows ? shape.slice(0, 1) : []), ...after];
}
