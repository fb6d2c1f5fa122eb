/**
 * Writes an ONNX model byte for byte, because the set-up has only Node. This file has only the
 * parts that `make.mjs` and tests need. A model is a protobuf message: the numbers below are the
 * field numbers of onnx.proto (ONNX 1.12).
 */

/** @typedef {readonly (number | string)[]} Dims sizes, and names of variable sizes */

/**
 * @param {number | bigint} value
 * @returns {Buffer} the base-128 varint of a number that is not negative
 */
function varint(value) {
  const bytes = [];
  let left = BigInt(value);
  do {
    const low = Number(left & 0x7fn);
    left >>= 7n;
    bytes.push(left === 0n ? low : low | 0x80);
  } while (left !== 0n);
  return Buffer.from(bytes);
}

/** @type {(field: number, value: number | bigint) => Buffer} */
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);

/** @type {(field: number, ...parts: (Buffer | string)[]) => Buffer} */
export function nested(field, ...parts) {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([varint((field << 3) | 2), varint(body.length), body]);
}

/** Types of tensors' elements. */
export const FLOAT = 1;
export const INT32 = 6;
export const INT64 = 7;
export const STRING = 8;
export const BOOL = 9;
/** Types of nodes' attributes. */
const INT_ATTRIBUTE = 2;
const INTS_ATTRIBUTE = 7;
const IR_VERSION = 8;
const OPSET = 17;

/**
 * @param {string} name
 * @param {readonly number[]} dims
 * @param {Float32Array | BigInt64Array} values
 */
export function initializer(name, dims, values) {
  const data = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return nested(
    5,
    ...dims.map((dim) => number(1, dim)),
    number(2, values instanceof Float32Array ? FLOAT : INT64),
    nested(8, name),
    nested(9, data),
  );
}

/**
 * An initializer whose values are the first bytes of a file beside the model.
 * @param {string} name
 * @param {readonly number[]} dims
 * @param {string} location
 */
export function external(name, dims, location) {
  return nested(
    5,
    ...dims.map((dim) => number(1, dim)),
    number(2, FLOAT),
    nested(8, name),
    nested(13, nested(1, "location"), nested(2, location)),
    number(14, 1),
  );
}

/** @type {(field: number, name: string, dims: Dims, type: number) => Buffer} */
function tensor(field, name, dims, type) {
  const shape = dims.map((dim) => nested(1, typeof dim === "number" ? number(1, dim) : nested(2, dim)));
  return nested(field, nested(1, name), nested(2, nested(1, number(1, type), nested(2, ...shape))));
}

/** @type {(name: string, dims: Dims, type?: number) => Buffer} */
export const input = (name, dims, type = FLOAT) => tensor(11, name, dims, type);
/** @type {(name: string, dims: Dims, type?: number) => Buffer} */
export const output = (name, dims, type = FLOAT) => tensor(12, name, dims, type);

/**
 * @param {string} operator
 * @param {readonly string[]} inputs an empty name leaves an optional input out
 * @param {readonly string[]} outputs
 * @param {Readonly<Record<string, number | readonly number[]>>} attributes
 */
export function node(operator, inputs, outputs, attributes = {}) {
  return nested(
    1,
    ...inputs.map((name) => nested(1, name)),
    ...outputs.map((name) => nested(2, name)),
    nested(3, outputs.find((name) => name !== "") ?? ""),
    nested(4, operator),
    ...Object.entries(attributes).map(([name, value]) =>
      typeof value === "number"
        ? nested(5, nested(1, name), number(3, value), number(20, INT_ATTRIBUTE))
        : nested(5, nested(1, name), ...value.map((one) => number(8, one)), number(20, INTS_ATTRIBUTE)),
    ),
  );
}

/**
 * @param {string} name the graph's
 * @param {readonly Buffer[]} parts its nodes, initializers, inputs and outputs
 */
export function model(name, parts) {
  const graph = nested(7, ...parts, nested(2, name));
  return Buffer.concat([number(1, IR_VERSION), nested(2, "baton"), graph, nested(8, nested(1, ""), number(2, OPSET))]);
}
