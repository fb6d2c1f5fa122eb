/**
 * A tensor model's own thread: takes stacked tensors, runs the graph, and gives the outputs back.
 */
import { readFile } from "node:fs/promises";
import type { Datatype } from "#shared/model/datatype.js";
import { serveThread } from "../../thread/serve.js";
import { Begin } from "../begin.js";
import { place, viewOf, type Pieces } from "../memory.js";
import { openInputs } from "./defaults.js";
import { mayHoldOtherBytes } from "./onnx-search.js";
import type { PlainTensor, RunAnswer, RunRequest, TensorOptions, WantedOutput } from "../protocol.js";
import type { GraphMetadata, GraphTensor } from "../../onnx/graph.js";
import {
  datatypeOf,
  describe,
  elementBytes,
  makeTensor,
  openSession,
  type OrtTensor,
  type Session,
} from "../../onnx/runtime.js";
import { onCpu } from "../../onnx/providers.js";
import { checkOutputStrings, decodeStrings, encodeStrings } from "./strings.js";

/**
 * This thread's own memory for each tensor, by name, used run after run. ONNX Runtime for Node
 * takes no shared memory.
 */
class OwnMemory {
  readonly #kept = new Map<string, ArrayBuffer>();

  bytes(name: string, count: number): Uint8Array {
    let buffer = this.#kept.get(name);
    if (buffer === undefined || buffer.byteLength < count) this.#kept.set(name, (buffer = new ArrayBuffer(count)));
    return new Uint8Array(buffer, 0, count);
  }
}

/** Copies an input into memory that ONNX Runtime takes. */
function toOrt({ name, datatype, shape, data }: PlainTensor, own: OwnMemory): OrtTensor {
  if (datatype === "BYTES") return makeTensor(datatype, decodeStrings(name, data), shape);
  const copy = own.bytes(name, data.length);
  copy.set(data);
  return makeTensor(datatype, copy, shape);
}

/** The tensor for the run to write an output into; null if only the run can tell its size. */
function prepare(
  { name, datatype, dims }: GraphTensor,
  { axis }: WantedOutput,
  rows: number | undefined,
  own: OwnMemory,
): OrtTensor | null {
  const shape = rows === undefined ? dims : dims.map((dim, at) => (at === axis ? rows : dim));
  const bytes = elementBytes(datatype);
  if (bytes === undefined || shape.includes(-1)) return null;
  return makeTensor(
    datatype,
    own.bytes(
      name,
      shape.reduce((product, dim) => product * dim, bytes),
    ),
    shape,
  );
}

function fromOrt(name: string, tensor: OrtTensor, { ownStringsAreUtf8 }: Served): Pieces {
  const datatype: Datatype | undefined = datatypeOf(tensor);
  if (datatype === undefined) throw new TypeError(`output '${name}' has the unsupported type ${tensor.type}`);
  if (tensor.type === "string") {
    const strings = tensor.data as string[];
    if (!ownStringsAreUtf8) checkOutputStrings(name, strings);
    return { name, datatype, shape: tensor.dims, data: [encodeStrings(strings)] };
  }
  const { buffer, byteOffset, byteLength } = tensor.data as Float32Array<ArrayBuffer>;
  return { name, datatype, shape: tensor.dims, data: [new Uint8Array(buffer, byteOffset, byteLength)] };
}

/** An open model. */
interface Served {
  readonly session: Session;
  /** By name. */
  readonly outputs: ReadonlyMap<string, GraphTensor>;
  /**
   * Whether all strings in the model's file are UTF-8. If so, a U+FFFD in an output replaces no
   * other byte.
   */
  readonly ownStringsAreUtf8: boolean;
  /** Memory for inputs. */
  readonly fed: OwnMemory;
  /** Memory for outputs. */
  readonly fetched: OwnMemory;
  /** How long each run takes at least. */
  readonly executeDelayMs: number;
  /** The values of the inputs that a run does not give. */
  readonly defaults: Readonly<Record<string, OrtTensor>>;
}

/** No other thread wakes this thread while it waits here. */
const sleeper = new Int32Array(new SharedArrayBuffer(4));

async function run(served: Served, request: RunRequest): Promise<RunAnswer> {
  const { inputs, memory, outputs, rows, into, begin } = request;
  if (begin !== undefined && !new Begin(begin).begin()) return { outputs: undefined, memory: into, ranMs: 0 };
  const given = inputs.map((input) => [input.name, toOrt(viewOf(input, memory), served.fed)]);
  const feeds = { ...served.defaults, ...(Object.fromEntries(given) as Record<string, OrtTensor>) };
  const fetches = Object.fromEntries(
    outputs.map((wanted) => {
      const output = served.outputs.get(wanted.name);
      return [wanted.name, output === undefined ? null : prepare(output, wanted, rows, served.fetched)];
    }),
  );
  const startedAt = performance.now();
  const results = await served.session.run(feeds, fetches);
  const left = served.executeDelayMs - (performance.now() - startedAt);
  if (left > 0) Atomics.wait(sleeper, 0, 0, left);
  const ranMs = performance.now() - startedAt;
  const tensors = outputs.map(({ name }) => {
    // The run has written a prepared output in place. Its result is another object over the same
    // memory.
    const tensor = fetches[name] ?? results[name];
    if (tensor === undefined) throw new TypeError(`the model gave no output '${name}'`);
    return fromOrt(name, tensor, served);
  });
  const { memory: filled, placed } = place(tensors, into);
  return { outputs: placed, memory: filled, ranMs };
}

/** Opens the model, and reads the values of the inputs that a run need not give. */
async function open(options: TensorOptions) {
  const { optionalInputs = [], modelFile } = options;
  if (optionalInputs.length === 0) return { session: await openSession(options), defaults: {} };
  const whole = await readFile(modelFile);
  const { file, values } = openInputs(whole, new Set(optionalInputs));
  if (values === undefined) return { session: await openSession(options), defaults: {}, whole };
  const reading = await openSession({ ...options, modelFile: values, placement: onCpu });
  const defaults = await reading.run({});
  await reading.release();
  return { session: await openSession({ ...options, modelFile: file }), defaults, whole };
}

await serveThread<TensorOptions, RunRequest, GraphMetadata, RunAnswer>(async (options) => {
  const { session, defaults, whole } = await open(options);
  const all = describe(session.inputMetadata);
  const graph = {
    inputs: all.filter(({ name }) => !Object.hasOwn(defaults, name)),
    outputs: describe(session.outputMetadata),
    initializers: all.filter(({ name }) => Object.hasOwn(defaults, name)),
  };
  const outputs = new Map(graph.outputs.map((output) => [output.name, output]));
  const givesStrings = graph.outputs.some(({ datatype }) => datatype === "BYTES");
  const ownStringsAreUtf8 = !givesStrings || !mayHoldOtherBytes(whole ?? (await readFile(options.modelFile)));
  const own = { fed: new OwnMemory(), fetched: new OwnMemory(), defaults };
  const served: Served = { session, outputs, ownStringsAreUtf8, ...own, executeDelayMs: options.executeDelayMs };
  return {
    ready: graph,
    answer: async (request) => ({ answer: await run(served, request) }),
  };
});
