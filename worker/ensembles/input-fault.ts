/**
 * Checks the tensors of a step before its model gets them. The gateway has checked those of the
 * ensemble, but the sizes of tensors between two steps are known only when they run. Pure.
 */
import type { Tensor } from "#shared/frame.js";
import { isOneText } from "#shared/contract/texts.js";
import type { ServingStep } from "./serving.js";

/**
 * Adds a batch axis of 1, or takes it away, where one model has that axis and the other has not, as
 * Triton does. A scalar of a graph is one element elsewhere.
 * @param dims without the batch axis
 */
export function shapedAs(tensor: Tensor, dims: readonly number[], hasRows: boolean): Tensor {
  const { shape } = tensor;
  if (hasRows && shape.length === dims.length) return { ...tensor, shape: [1, ...shape] };
  const isSpare = !hasRows && shape.length === dims.length + 1 && shape[0] === 1;
  return isSpare ? { ...tensor, shape: shape.slice(1) } : tensor;
}

/** @returns why the model of a step cannot take the tensors, in Triton's words */
export function inputFault(
  { served: model, batching: { shared } }: Pick<ServingStep, "served" | "batching">,
  tensors: readonly Tensor[],
): string | undefined {
  const { name, maxBatchSize, generator } = model;
  const missing = model.inputs.find(
    (input) => input.optional !== true && !tensors.some((one) => one.name === input.name),
  );
  if (missing !== undefined) return `expected an input '${missing.name}' for model '${name}'`;
  let rows: number | undefined;
  for (const { name: input, shape } of tensors) {
    const dims = model.inputs.find((one) => one.name === input)?.dims ?? [];
    const hasRows = maxBatchSize > 0 && !shared.has(input);
    const wanted = hasRows ? [-1, ...dims] : dims;
    const fits = shape.length === wanted.length && wanted.every((dim, i) => dim === -1 || dim === shape[i]);
    if (generator === undefined ? !fits : !isOneText(shape)) {
      const got = `Expected [${wanted.join(",")}], got [${shape.join(",")}]`;
      return `unexpected shape for input '${input}' for model '${name}'. ${got}`;
    }
    if (!hasRows || generator !== undefined) continue;
    const own = shape[0] ?? 0;
    if (own < 1) return `inference request batch-size must be >= 1 for '${name}'`;
    if (own > maxBatchSize) return `inference request batch-size must be <= ${maxBatchSize} for '${name}'`;
    if (own > 1 && model.sequence !== undefined) {
      return `inference request to model '${name}' must specify batch-size 1 due to requirements of sequence batcher`;
    }
    rows ??= own;
    if (own !== rows) return `input '${input}' batch size does not match other inputs for '${name}'`;
  }
  return undefined;
}
