/**
 * The names of a generator's tensors: a client may choose any name for its text, unless the model's
 * own configuration names the tensors.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";

/** Default names of a generator's input and output. */
const usualNames = { input: "text_input", output: "text_output" } as const;

/**
 * Describes a generator by the name that the request gives to its text. The answer to `text_input`
 * is `text_output`; the answer to any other name has that same name.
 *
 * @returns the model itself if it is no generator, if its configuration names its tensors, or if
 * the request has no single text
 */
export function underItsTextName(model: ServedModel, inputs: readonly Tensor[]): ServedModel {
  const [given, ...others] = inputs;
  if (model.generator === undefined || model.generator.namesText === true) return model;
  if (given?.datatype !== "BYTES" || others.length > 0 || given.name === usualNames.input) return model;
  const named = { name: given.name, datatype: given.datatype, dims: [1] };
  return { ...model, inputs: [named], outputs: [named] };
}
