/**
 * A model's own thread, and the only file that imports ONNX Runtime: `session.run` computes on the calling thread, so on the main thread it would stop the
 * renewal of leases.
 */
import { parentPort, workerData } from "node:worker_threads";
import "./half.js";
import * as ort from "onnxruntime-node";
import type { Datatype } from "#shared/model/datatype.js";
import { decodeStrings, encodeStrings } from "./strings.js";
import type { GraphTensor, PlainTensor, RunRequest, ThreadMessage, ThreadOptions } from "./protocol.js";

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

function toOrt({ datatype, shape, data }: PlainTensor): ort.Tensor {
  if (datatype === "BYTES") return new ort.Tensor("string", decodeStrings(data), shape);
  const kind = arrays[datatype];
  if (kind === undefined) throw new TypeError(`ONNX Runtime for Node has no ${datatype} tensors`);
  const elements = new kind.array(data.buffer, data.byteOffset, data.byteLength / kind.bytes);
  return new ort.Tensor(kind.type as "float32", elements as Float32Array, shape);
}

function fromOrt(name: string, tensor: ort.Tensor): PlainTensor {
  const datatype = types[tensor.type];
  if (datatype === undefined) throw new TypeError(`output '${name}' has the unsupported type ${tensor.type}`);
  if (tensor.type === "string")
    return { name, datatype, shape: tensor.dims, data: encodeStrings(tensor.data as string[]) };
  const { buffer, byteOffset, byteLength } = tensor.data as Float32Array<ArrayBuffer>;
  return { name, datatype, shape: tensor.dims, data: new Uint8Array(buffer, byteOffset, byteLength) };
}

function describe(values: readonly ort.InferenceSession.ValueMetadata[]): GraphTensor[] {
  return values.map((value) => {
    if (!value.isTensor) throw new TypeError(`'${value.name}' is not a tensor`);
    const datatype = types[value.type];
    if (datatype === undefined) throw new TypeError(`'${value.name}' has the unsupported type ${value.type}`);
    return { name: value.name, datatype, dims: value.shape.map((dim) => (typeof dim === "number" ? dim : -1)) };
  });
}

function post(message: ThreadMessage, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer);
}

async function run(session: ort.InferenceSession, { id, inputs, outputs }: RunRequest): Promise<void> {
  try {
    const feeds = Object.fromEntries(inputs.map((tensor) => [tensor.name, toOrt(tensor)]));
    const startedAt = performance.now();
    const results = await session.run(feeds, outputs);
    const ranMs = performance.now() - startedAt;
    const tensors = outputs.map((name) => {
      const tensor = results[name];
      if (tensor === undefined) throw new TypeError(`the model gave no output '${name}'`);
      return fromOrt(name, tensor);
    });
    const transfer = new Set(tensors.map(({ data }) => data.buffer));
    post({ kind: "result", id, outputs: tensors, ranMs }, [...transfer]);
  } catch (error) {
    post({ kind: "error", id, reason: error instanceof Error ? error.message : String(error) });
  }
}

async function main({ modelFile, providers, intraOpThreads, graphOptimization }: ThreadOptions): Promise<void> {
  let session: ort.InferenceSession;
  try {
    session = await ort.InferenceSession.create(modelFile, {
      executionProviders: [...providers],
      intraOpNumThreads: intraOpThreads,
      graphOptimizationLevel: graphOptimization,
      // Waiting threads must sleep: spinning would take the cores from Redis, NATS and the gateway beside them.
      extra: { session: { intra_op: { allow_spinning: "0" }, inter_op: { allow_spinning: "0" } } },
    });
    post({
      kind: "ready",
      graph: { inputs: describe(session.inputMetadata), outputs: describe(session.outputMetadata) },
    });
  } catch (error) {
    post({ kind: "failed", reason: error instanceof Error ? error.message : String(error) });
    return;
  }
  let last = Promise.resolve();
  parentPort?.on("message", (request: RunRequest) => {
    last = last.then(() => run(session, request));
  });
}

await main(workerData as ThreadOptions);
