/**
 * Inputs with a value in the configuration, the same for all requests, such as a sampling rate:
 * `parameters { key: "constant_input:sr" value: { string_value: "16000" } }`.
 */
import type { ModelConfig } from "#shared/model/config.js";
import { datatypeBytes, elementCount, type Datatype } from "#shared/model/datatype.js";
import { stringFault } from "#shared/model/strings.js";
import type { Tensor } from "#shared/frame.js";
import { batchAxisOf } from "../../onnx/batch-axis.js";
import type { GraphMetadata, GraphTensor } from "../../onnx/graph.js";
import { LoadError } from "../../thread/load-error.js";

const CONSTANT = "constant_input:";

/** Names of the inputs that have a constant value. */
export function constantNames(parameters: ModelConfig["parameters"]): string[] {
  return Object.keys(parameters)
    .filter((key) => key.startsWith(CONSTANT))
    .map((key) => key.slice(CONSTANT.length));
}

/**
 * Refuses a constant that the graph does not have, and a constant that is also listed under input.
 * Must run before the check of the number of inputs, because a wrong number would not name the
 * input.
 *
 * @throws LoadError that names the constant
 */
export function checkConstantNames(config: ModelConfig, graph: GraphMetadata): void {
  for (const name of constantNames(config.parameters)) inputOf(config, graph, name);
}

/**
 * @param config complete
 * @returns a tensor for each constant, with one row if the graph's input has a batch axis
 * @throws LoadError
 */
export function readConstants(config: ModelConfig, graph: GraphMetadata): Tensor[] {
  return constantNames(config.parameters).map((name) =>
    constantOf(config, inputOf(config, graph, name), config.parameters[CONSTANT + name]?.string_value ?? ""),
  );
}

/** @throws LoadError */
function inputOf({ input }: ModelConfig, graph: GraphMetadata, name: string): GraphTensor {
  const tensor = graph.inputs.find((one) => one.name === name);
  if (tensor === undefined) {
    const allowed = graph.inputs.map((one) => one.name).sort();
    throw new LoadError(`parameters['${CONSTANT}${name}']: the graph's inputs are ${allowed.join(", ")}`);
  }
  if (input.some((one) => one.name === name)) {
    throw new LoadError(`input '${name}' has a constant value, so it must not be listed under input`);
  }
  return tensor;
}

function constantOf(config: ModelConfig, tensor: GraphTensor, text: string): Tensor {
  const { name, datatype } = tensor;
  const axis = batchAxisOf(config, tensor);
  const own = axis === undefined ? tensor.dims : tensor.dims.toSpliced(axis, 1);
  const values = text.split(",").map((value) => value.trim());
  const fixed = elementCount(own.filter((dim) => dim !== -1));
  const variable = own.filter((dim) => dim === -1).length;
  const rest = values.length / fixed;
  if (variable > 1 || (variable === 0 ? values.length !== fixed : !Number.isInteger(rest))) {
    const each = axis === undefined ? "" : " for each row";
    const has = `has ${values.length} ${values.length === 1 ? "value" : "values"}`;
    const wants = variable === 0 ? `takes ${fixed}${each}` : `has the shape [${own.join(",")}]${each}`;
    throw new LoadError(`parameters['${CONSTANT}${name}'] ${has}, but the input '${name}' ${wants}`);
  }
  const dims = own.map((dim) => (dim === -1 ? rest : dim));
  const data = Buffer.concat(values.map((value) => encode(name, datatype, value)));
  return { name, datatype, shape: axis === undefined ? dims : [1, ...dims], data };
}

function encode(name: string, datatype: Datatype, text: string): Buffer {
  const which = `parameters['${CONSTANT}${name}']: '${text}'`;
  if (datatype === "BYTES") {
    const bytes = Buffer.from(text);
    const fault = stringFault(bytes);
    if (fault !== undefined) throw new LoadError(`${which} ${fault}`);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return Buffer.concat([length, bytes]);
  }
  if (datatype === "FP16" || datatype === "BF16") {
    throw new LoadError(`${which}: a constant of ${datatype} is not supported; let requests give it`);
  }
  const bytes = Buffer.alloc(datatypeBytes[datatype]);
  try {
    write(bytes, datatype, text);
  } catch {
    throw new LoadError(`${which} is no ${datatype}`);
  }
  return bytes;
}

type Written = Exclude<Datatype, "BYTES" | "FP16" | "BF16">;

/** @throws Error if the text is no such number, or the number is too large for the type */
function write(bytes: Buffer, datatype: Written, text: string): void {
  if (datatype === "FP32" || datatype === "FP64") {
    const value = text === "" ? NaN : Number(text);
    if (!Number.isFinite(value)) throw new RangeError("not a number");
    if (datatype === "FP32") bytes.writeFloatLE(value);
    else bytes.writeDoubleLE(value);
    return;
  }
  if (datatype === "BOOL") {
    const value = ["false", "true", "0", "1"].indexOf(text);
    if (value < 0) throw new RangeError("not true or false");
    bytes.writeUInt8(value % 2);
    return;
  }
  if (!/^-?\d+$/.test(text)) throw new RangeError("not a whole number");
  if (datatype === "INT64") bytes.writeBigInt64LE(BigInt(text));
  else if (datatype === "UINT64") bytes.writeBigUInt64LE(BigInt(text));
  else if (datatype.startsWith("U")) bytes.writeUIntLE(Number(text), 0, bytes.length);
  else bytes.writeIntLE(Number(text), 0, bytes.length);
}
