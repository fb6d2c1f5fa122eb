/**
 * Finds a tensor's batch axis in a complete configuration. The parameter `batch_axis:<tensor>`
 * names the axis; without that parameter, it is axis 0 if that axis has any size.
 */
import type { ModelConfig } from "#shared/model/config.js";
import type { GraphTensor } from "./graph.js";

export const BATCH_AXIS = "batch_axis:";

/**
 * @returns undefined if the model has no batches, or if all requests of a batch share the tensor
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
