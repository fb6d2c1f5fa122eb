/** `Inference-Header-Content-Length: 0`: the body is the only input's bytes, and its shape is worked out from the model's. */
import { datatypeBytes, elementCount } from "#shared/model/datatype.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { requestPrefix } from "./request-prefix.js";

export function rawInput(body: Buffer, model: ServedModel): Tensor {
  const [input, ...others] = model.inputs;
  if (input === undefined || others.length > 0) {
    throw refused(
      `Raw request must only have 1 input (found 1) to be deduced but got ${model.inputs.length} inputs in '${model.name}' model configuration`,
    );
  }
  const { name, datatype, dims } = input;
  const batch = model.maxBatchSize > 0 ? [1] : [];
  if (datatype === "BYTES") {
    if (dims.length !== 1 || dims[0] !== 1) {
      throw refused(`For BYTE datatype raw input '${name}', the model must have input shape [1]`);
    }
    const data = Buffer.allocUnsafe(4 + body.length);
    data.writeUInt32LE(body.length, 0);
    body.copy(data, 4);
    return { name, datatype, shape: [...batch, 1], data };
  }
  const wild = dims.filter((dim) => dim === -1).length;
  if (wild > 1) {
    throw refused(
      `The shape of the raw input '${name}' can not be deduced because there are more than one variable-sized dimension`,
    );
  }
  const unit = datatypeBytes[datatype] * elementCount(dims.filter((dim) => dim !== -1));
  if (wild === 1 && (unit === 0 || body.length % unit !== 0)) {
    throw refused(`unexpected total byte size ${body.length} for raw input '${name}', expecting multiple of ${unit}`);
  }
  const shape = [...batch, ...dims.map((dim) => (dim === -1 ? body.length / unit : dim))];
  return { name, datatype, shape, data: body };
}

function refused(message: string): InferenceError {
  return new InferenceError("invalid_argument", requestPrefix("") + message);
}
