/**
 * What a model runs before it serves, where its configuration names batch sizes: the first run of
 * a size takes longer than later ones, because ONNX Runtime lays out memory for it.
 */
import type { TensorSpec } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";
import { datatypeBytes, elementCount, type Datatype } from "#shared/model/datatype.js";
import type { Pieces } from "./memory.js";
import type { Control, ServingModel } from "./serving.js";
import { stack } from "./stack.js";

/**
 * @param inputs those that requests give
 * @param size rows of the batch; the model has a batch dimension
 * @returns all inputs of the graph: zeros, the states that sequences begin with, and controls that
 * say that the rows are none of a sequence
 */
export function warmUpBatch(
  { states, controls }: Pick<ServingModel, "states" | "controls">,
  inputs: readonly TensorSpec[],
  size: number,
): Pieces[] {
  const rows: Tensor[] = [
    ...inputs.map(({ name, datatype, dims }) => zeros(name, datatype, [1, ...dims.map((dim) => Math.max(dim, 1))])),
    ...states.map(({ input: name, datatype, initialShape: shape, initial: data }) => ({ name, datatype, shape, data })),
    ...controls.map(controlRow),
  ];
  return rows.map((row) =>
    stack(
      Array.from({ length: size }, () => row),
      true,
    ),
  );
}

function controlRow(control: Control): Tensor {
  const { tensor, datatype } = control;
  const row = zeros(tensor, datatype, [1, 1]);
  return control.kind === "corrid" ? row : { ...row, data: control.values.no };
}

/** A zero of BYTES is an empty string: its length prefix, four zero bytes. */
function zeros(name: string, datatype: Datatype, shape: readonly number[]): Tensor {
  return { name, datatype, shape, data: Buffer.alloc(elementCount(shape) * (datatypeBytes[datatype] || 4)) };
}
