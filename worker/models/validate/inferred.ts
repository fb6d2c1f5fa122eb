/** Describes in one line the fields that the model's graph added to a configuration. */
import type { ModelConfig } from "#shared/model/config.js";
import { BATCH_AXIS } from "../../onnx/batch-axis.js";

/**
 * @param given before `completeFromGraph`
 * @param complete after `completeFromGraph`
 * @returns undefined if the graph added no part of a sequence and no batch axis
 */
export function describeInferred(given: ModelConfig, complete: ModelConfig): string | undefined {
  const states = (complete.sequence_batching?.state ?? [])
    .slice(given.sequence_batching?.state.length)
    .map(({ input_name, output_name, dims }) => `${input_name}/${output_name} [${dims.join(",")}]`);
  const controls = (complete.sequence_batching?.control_input ?? [])
    .slice(given.sequence_batching?.control_input.length)
    .map(({ name }) => name);
  const axes = Object.entries(complete.parameters)
    .filter(([key]) => key.startsWith(BATCH_AXIS) && given.parameters[key] === undefined)
    .map(([key, { string_value: axis }]) => `${key.slice(BATCH_AXIS.length)} ${axis}`);
  const sequences = given.sequence_batching !== undefined;
  const size = sequences && complete.max_batch_size !== given.max_batch_size ? [String(complete.max_batch_size)] : [];
  const said: [what: string, values: readonly string[]][] = [
    ["states", states],
    ["controls", controls],
    ["batch axes", axes],
    ["max_batch_size", size],
  ];
  const parts = said.filter(([, values]) => values.length > 0).map(([what, values]) => `${what} ${values.join(", ")}`);
  return parts.length === 0 ? undefined : parts.join("; ");
}
