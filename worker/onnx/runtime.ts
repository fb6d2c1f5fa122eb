/**
 * The only file that imports ONNX Runtime. Only threads of models import this file: `session.run`
 * computes on the calling thread, so on the main thread it would stop the worker's heartbeat.
 */
import "./half.js";
import * as ort from "onnxruntime-node";
import type { Datatype } from "#shared/model/datatype.js";
import type { GraphTensor, SessionOptions } from "./graph.js";
import type { Placement } from "./providers.js";
import { inTurn } from "./turns.js";

export type OrtTensor = ort.Tensor;

/** An open model. Inputs and outputs lie in the memory of this machine, with any provider. */
export interface Session extends Pick<ort.InferenceSession, "inputMetadata" | "outputMetadata"> {
  /** @param fetches the wanted outputs, and memory for some of them; absent for all outputs */
  run(feeds: Record<string, OrtTensor>, fetches?: Record<string, OrtTensor | null>): Promise<Record<string, OrtTensor>>;
  /** Frees the model's memory, on its device too. */
  release(): Promise<void>;
}

/** ONNX Runtime's names of the types that Baton carries. */
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

/** ONNX Runtime's type and array for each datatype except BYTES, and the bytes of one element. */
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

/**
 * @param data little-endian elements of `datatype`, in an array of any type; strings for BYTES. The
 * tensor uses this memory without a copy.
 * @throws TypeError for a datatype that ONNX Runtime for Node does not have
 */
export function makeTensor(datatype: Datatype, data: ArrayBufferView | string[], shape: readonly number[]): OrtTensor {
  if (Array.isArray(data)) return new ort.Tensor("string", data, shape);
  const kind = arrays[datatype];
  if (kind === undefined) throw new TypeError(`ONNX Runtime for Node has no ${datatype} tensors`);
  const elements = new kind.array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength / kind.bytes);
  return new ort.Tensor(kind.type as "float32", elements as Float32Array, shape);
}

/** The size of one element; undefined if elements differ in size. */
export function elementBytes(datatype: Datatype): number | undefined {
  return arrays[datatype]?.bytes;
}

/** The datatype of a tensor; undefined if Baton cannot carry the type. */
export function datatypeOf(tensor: OrtTensor): Datatype | undefined {
  return types[tensor.type];
}

/**
 * The inputs or outputs of a graph.
 *
 * @throws TypeError for a value that is not a tensor, or that Baton cannot carry
 */
export function describe(values: readonly ort.InferenceSession.ValueMetadata[]): GraphTensor[] {
  return values.map((value) => {
    if (!value.isTensor) throw new TypeError(`'${value.name}' is not a tensor`);
    const datatype = types[value.type];
    if (datatype === undefined) throw new TypeError(`'${value.name}' has the unsupported type ${value.type}`);
    const symbols = value.shape.map((dim) => (typeof dim === "string" && dim !== "" ? dim : undefined));
    return {
      name: value.name,
      datatype,
      dims: value.shape.map((dim) => (typeof dim === "number" ? dim : -1)),
      ...(symbols.some((symbol) => symbol !== undefined) && { symbols }),
    };
  });
}

/**
 * @param options `modelFile` may also be the bytes of a file
 * @throws Error with ONNX Runtime's reason if the model cannot load, or if a provider is not there
 */
export async function openSession({
  modelFile,
  placement,
  turns,
  intraOpThreads,
  interOpThreads = 0,
  executionMode,
  memoryArena,
  memoryPattern,
  graphOptimization,
}: Omit<SessionOptions, "modelFile"> & { readonly modelFile: string | Uint8Array }): Promise<Session> {
  const alone = placement.providers.includes("webgpu");
  const take = <Result>(work: () => Promise<Result>) => (alone ? inTurn(turns, work) : work());
  const options: ort.InferenceSession.SessionOptions = {
    executionProviders: executionProviders(placement),
    intraOpNumThreads: intraOpThreads,
    ...(interOpThreads > 0 && { interOpNumThreads: interOpThreads }),
    ...(executionMode !== undefined && { executionMode }),
    ...(memoryArena !== undefined && { enableCpuMemArena: memoryArena }),
    ...(memoryPattern !== undefined && { enableMemPattern: memoryPattern }),
    graphOptimizationLevel: graphOptimization,
    // On a GPU, the runtime warns for every model that small operators over shapes stay on the CPU.
    logSeverityLevel: placement.gpu === undefined ? 2 : 3,
    // Waiting threads must sleep. Spinning would take the cores from Redis, NATS and the gateway
    // that run beside them.
    extra: { session: { intra_op: { allow_spinning: "0" }, inter_op: { allow_spinning: "0" } } },
  };
  const session = await take(() =>
    typeof modelFile === "string"
      ? ort.InferenceSession.create(modelFile, options)
      : ort.InferenceSession.create(modelFile, options),
  );
  const { inputMetadata, outputMetadata } = session;
  return {
    inputMetadata,
    outputMetadata,
    run: (feeds, fetches) => take(() => (fetches === undefined ? session.run(feeds) : session.run(feeds, fetches))),
    release: () => take(() => session.release()),
  };
}

/** WebGPU takes no GPU number, and computes on the card that the driver offers first. */
function executionProviders({ providers, gpu = 0 }: Placement): ort.InferenceSession.ExecutionProviderConfig[] {
  return providers.map((name) => (name === "cuda" || name === "tensorrt" ? { name, deviceId: gpu } : name));
}
