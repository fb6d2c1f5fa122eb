/** Results of `generate`: one flat object, in which an output of one element is that element. */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";
import { elementCount } from "#shared/model/datatype.js";
import { rawToJson } from "./raw-to-json.js";

/** @throws InferenceError where an output cannot be written as JSON */
export function renderGenerate(model: ServedModel, id: string, tensors: readonly Tensor[]): string {
  const idMember = id === "" ? "" : `,"id":${JSON.stringify(id)}`;
  const outputs = tensors.map((tensor) => {
    const list = rawToJson(tensor);
    return `,${JSON.stringify(tensor.name)}:${elementCount(tensor.shape) === 1 ? list.slice(1, -1) : list}`;
  });
  const { name, version } = model;
  return `{"model_name":${JSON.stringify(name)},"model_version":${JSON.stringify(version)}${idMember}${outputs.join("")}}`;
}
