/** The outcome of an inference as the answer of `generate`: one flat JSON object. */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";
import { elementCount } from "#shared/model/datatype.js";
import { rawToJson } from "./tensors-json.js";

/**
 * Writes a result as one flat object. An output of one element becomes that element, without a
 * list.
 * @throws InferenceError if an output has no form in JSON
 */
export function renderGenerate(
  model: Pick<ServedModel, "name" | "version">,
  id: string,
  tensors: readonly Tensor[],
): string {
  const idMember = id === "" ? "" : `,"id":${JSON.stringify(id)}`;
  const outputs = tensors.map((tensor) => {
    const list = rawToJson(tensor);
    return `,${JSON.stringify(tensor.name)}:${elementCount(tensor.shape) === 1 ? list.slice(1, -1) : list}`;
  });
  const { name, version } = model;
  return `{"model_name":${JSON.stringify(name)},"model_version":${JSON.stringify(version)}${idMember}${outputs.join("")}}`;
}
