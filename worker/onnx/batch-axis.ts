/**
 * Where a tensor of a graph has its batch, as a complete configuration says it: at the axis that
 * the parameter `batch_axis:<tensor>` names, else at axis 0 if that is of any size.
 */
import type { ModelConfig } from "#shared/model/config.js";
import type { GraphTensor } from "./graph.js";

export const BATCH_AXIS = "batch_axis:";

/**
 * @returns undefined where the model has no batches, or all requests of a batch share the tensor
 */
export function batchAxisOf(
  { max_batch_size, parameters }: Pick<ModelConfig, "max_batch_size" | "parameters">,
  { name, dims }: GraphTensor,
): number | undefined {
  if (max_batch_size === 0) return undefined;
  const named = parameters[BATCH_AXIS + name];
  if (named !== undefined) return Number(named.string_value);
  return dims[0] === -1 ? 0 : undefined;
}
