/**
 * The only file that imports ONNX Runtime, and only threads of models import it: `session.run` computes on the calling thread, so on the main thread it would stop
 * the renewal of leases.
 */
import "./half.js";
import * as ort from "onnxruntime-node";
import type { Datatype } from "#shared/model/datatype.js";
import type { GraphTensor, ThreadOptions } from "./protocol.js";

export type Session = ort.InferenceSession;
export type OrtTensor = ort.Tensor;

const types: Partial<Record<ort.Tensor.Type, Datatype>> = {
  bool: "BOOL",
  uint8: "UINT8",
  uint16: "UINT16",
  uint32: "UINT32",
  uint64: "UINT64",
  int8: "INT8",
  int16: "INT16",
  int32: "INT32",
  int64: "INT64",
  float16: "FP16",
  float32: "FP32",
  float64: "FP64",
  string: "BYTES",
};

type ElementArray = new (buffer: ArrayBuffer, byteOffset: number, length: number) => ArrayBufferView;

const arrays: Partial<Record<Datatype, { type: ort.Tensor.Type; array: ElementArray; bytes: number }>> = {
  BOOL: { type: "bool", array: Uint8Array, bytes: 1 },
  UINT8: { type: "uint8", array: Uint8Array, bytes: 1 },
  UINT16: { type: "uint16", array: Uint16Array, bytes: 2 },
  UINT32: { type: "uint32", array: Uint32Array, bytes: 4 },
  UINT64: { type: "uint64", array: BigUint64Array, bytes: 8 },
  INT8: { type: "int8", array: Int8Array, bytes: 1 },
  INT16: { type: "int16", array: Int16Array, bytes: 2 },
  INT32: { type: "int32", array: Int32Array, bytes: 4 },
  INT64: { type: "int64", array: BigInt64Array, bytes: 8 },
  FP16: { type: "float16", array: Uint16Array, bytes: 2 },
  FP32: { type: "float32", array: Float32Array, bytes: 4 },
  FP64: { type: "float64", array: Float64Array, bytes: 8 },
};

/** @param data one element type's array over little-endian memory; strings for BYTES. */
export function makeTensor(datatype: Datatype, data: ArrayBufferView | string[], shape: readonly number[]): OrtTensor {
  if (Array.isArray(data)) return new ort.Tensor("string", data, shape);
  const kind = arrays[datatype];
  if (kind === undefined) throw new TypeError(`ONNX Runtime for Node has no ${datatype} tensors`);
  const elements = new kind.array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength / kind.bytes);
  return new ort.Tensor(kind.type as "float32", elements as Float32Array, shape);
}

/** Undefined for what is no array of numbers. */
export function elementBytes(datatype: Datatype): number | undefined {
  return arrays[datatype]?.bytes;
}

/** Undefined for a type that Baton cannot carry. */
export function datatypeOf(tensor: OrtTensor): Datatype | undefined {
  return types[tensor.type];
}

export function describe(values: readonly ort.InferenceSession.ValueMetadata[]): GraphTensor[] {
  return values.map((value) => {
    if (!value.isTensor) throw new TypeError(`'${value.name}' is not a tensor`);
    const datatype = types[value.type];
    if (datatype === undefined) throw new TypeError(`'${value.name}' has the unsupported type ${value.type}`);
    return { name: value.name, datatype, dims: value.shape.map((dim) => (typeof dim === "number" ? dim : -1)) };
  });
}

export function openSession({
  modelFile,
  providers,
  intraOpThreads,
  graphOptimization,
}: ThreadOptions): Promise<ort.InferenceSession> {
  return ort.InferenceSession.create(modelFile, {
    executionProviders: [...providers],
    intraOpNumThreads: intraOpThreads,
    graphOptimizationLevel: graphOptimization,
    // Waiting threads must sleep: spinning would take the cores from Redis, NATS and the gateway beside them.
    extra: { session: { intra_op: { allow_spinning: "0" }, inter_op: { allow_spinning: "0" } } },
  });
}
