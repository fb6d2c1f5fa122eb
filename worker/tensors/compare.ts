/**
 * Runs made-up requests before a model on a GPU is served, on the GPU and on the CPU, and compares
 * the answers. So a driver that computes wrongly is seen before a client is answered, and the first
 * client does not wait for kernels to be compiled.
 */
import type { ServedModel, TensorSpec } from "#shared/contract/announcement.js";
import { readOutcome } from "#shared/contract/outcome.js";
import { encodeCorrelationId } from "#shared/contract/sequence.js";
import { decodeFrame, type Tensor } from "#shared/frame.js";
import { datatypeBytes, elementCount } from "#shared/model/datatype.js";
import { sequenceName } from "#shared/queue/address.js";
import type { Held } from "../lane/holdings.js";
import type { Settled } from "../lane/settle.js";
import { tensorDisagreement } from "../onnx/agreement.js";
import type { SessionOptions } from "../onnx/graph.js";
import { onCpu } from "../onnx/providers.js";
import { LoadError } from "../thread/load-error.js";
import { execute } from "./execute.js";
import { startModel } from "./host.js";
import type { ServingModel } from "./serving.js";

/** Steps of each made-up sequence; the second one is the first that continues a state. */
const STEPS = 3;
/** Made-up requests of a batch. */
const REQUESTS = 2;
/** What is tried for variable dimensions, in this order, until the CPU can run it. */
const SIZES = [1, 2, 16, 512];

/**
 * @param model as it will be served
 * @param options with which its session was opened
 * @param tolerance see `tensorDisagreement`
 * @param onFatal is called when the thread of the model on the CPU hangs or dies
 * @returns a warning where the model could not be compared
 * @throws LoadError where a GPU cannot run what the CPU can, or gives other answers
 */
export async function compareWithCpu(
  model: ServingModel,
  served: ServedModel,
  options: SessionOptions,
  tolerance: number | undefined,
  onFatal: (reason: string) => void,
): Promise<string[]> {
  if (options.placement.gpu === undefined) return [];
  const cpu = await startModel({ ...options, placement: onCpu }, onFatal);
  try {
    let reason = "";
    for (const size of SIZES) {
      const fault = await compare(model, { ...model, host: cpu }, served, size, tolerance);
      if (fault === undefined) return [];
      reason = fault;
      if (served.inputs.every(({ dims }) => !dims.includes(-1))) break;
    }
    return [`its answers were not compared with the CPU's, which cannot run made-up inputs: ${reason}`];
  } finally {
    await cpu.close();
  }
}

/** @returns why the CPU cannot run what was made up; undefined where both agree */
async function compare(
  model: ServingModel,
  expecting: ServingModel,
  served: ServedModel,
  size: number,
  tolerance: number | undefined,
): Promise<string | undefined> {
  const count = served.maxBatchSize > 1 && model.limits.maxBatchSize > 1 ? REQUESTS : 1;
  let states: (readonly Tensor[] | undefined)[] = Array.from({ length: count }, () => undefined);
  for (let step = 1; step <= STEPS; step++) {
    const batch = states.map((tensors, i) => madeUp(served, { sequence: i, step, size }, tensors));
    const expected = await settled(expecting, batch);
    const fault = expected.map(errorOf).find((error) => error !== undefined);
    if (fault !== undefined) return fault;
    const found = await settled(model, batch);
    for (const [i, one] of found.entries()) agree(one, expected[i], tolerance);
    states = expected.map(({ checkpoint }) => checkpoint?.tensors);
  }
  return undefined;
}

async function settled(model: ServingModel, batch: readonly Held[]): Promise<Settled[]> {
  return (await execute(model, batch, { maxStateBytes: Number.MAX_SAFE_INTEGER })).settlements();
}

function errorOf({ outcome: { kind, body } }: Settled): string | undefined {
  const outcome = readOutcome(kind, body);
  return outcome.kind === "error" ? outcome.message : undefined;
}

/** @throws LoadError where they do not */
function agree(found: Settled, expected: Settled | undefined, tolerance: number | undefined): void {
  const error = errorOf(found);
  if (error !== undefined) throw new LoadError(`it cannot be run there: ${error}`);
  const [ours, theirs] = [tensorsOf(found), expected === undefined ? [] : tensorsOf(expected)];
  for (const [i, tensor] of theirs.entries()) {
    const one = ours[i];
    const fault = one === undefined ? `'${tensor.name}' is missing` : tensorDisagreement(one, tensor, tolerance);
    if (fault !== undefined) throw new LoadError(`its answers there are not those of the CPU: ${fault}`);
  }
}

function tensorsOf({ outcome, checkpoint }: Settled): readonly Tensor[] {
  return [...decodeFrame(outcome.body).tensors, ...(checkpoint?.tensors ?? [])];
}

interface MadeUp {
  readonly sequence: number;
  readonly step: number;
  /** Of variable dimensions. */
  readonly size: number;
}

/** @returns a request as the queue would give it */
function madeUp(served: ServedModel, { sequence, step, size }: MadeUp, states: readonly Tensor[] | undefined): Held {
  const { inputs, outputs, sequence: remembers, maxBatchSize, name, version, digest } = served;
  const random = numbers(sequence * STEPS + step);
  const tensors = inputs.map((spec) => tensorOf(spec, maxBatchSize > 0, size, random));
  const request = "made-up";
  const lane = { bucket: 0, model: name, version, digest };
  const id = encodeCorrelationId(
    remembers?.corrid?.datatype === "BYTES"
      ? { kind: "string", value: String(sequence + 1) }
      : { kind: "uint64", value: BigInt(sequence + 1) },
  );
  return {
    delivery: {
      lane,
      tenant: request,
      bucket: 0,
      model: name,
      request,
      entry: `0-${sequence}`,
      key: `0:0-${sequence}`,
      sequence: remembers && sequenceName(request, id),
      step,
      number: step,
      start: step === 1,
      end: step === STEPS,
      brief: false,
      deadlineAt: Infinity,
      gateway: "",
      outcomeTtlMs: 0,
      from: "",
      frame: Buffer.alloc(0),
    },
    request: { meta: { outputs: outputs.map((output) => output.name) }, tensors },
    arrivedAt: 0,
    expiresAt: Infinity,
    rows: 1,
    shapeKey: "",
    sequence: undefined,
    state: Promise.resolve({ kind: "found", tensors: states }),
  };
}

function tensorOf({ name, datatype, dims }: TensorSpec, batched: boolean, size: number, random: () => number): Tensor {
  const own = dims.map((dim) => (dim === -1 ? size : dim));
  const shape = batched ? [1, ...own] : own;
  // A string of one digit follows its length.
  const bytes = datatype === "BYTES" ? 5 : datatypeBytes[datatype];
  const data = Buffer.alloc(elementCount(shape) * bytes);
  for (let at = 0; at < data.length; at += bytes) writeElement(data, at, datatype, random());
  return { name, datatype, shape, data };
}

/** @param value from -1 to 1; whole numbers become 0 or 1, which every vocabulary has */
function writeElement(data: Buffer, at: number, datatype: TensorSpec["datatype"], value: number): void {
  if (datatype === "FP32") data.writeFloatLE(value, at);
  else if (datatype === "FP64") data.writeDoubleLE(value, at);
  // Of half precision: 0.5 or -0.5.
  else if (datatype === "FP16") data.writeUInt16LE(value < 0 ? 0xb800 : 0x3800, at);
  else if (datatype === "BYTES") data.set([1, 0, 0, 0, value < 0 ? 0x30 : 0x31], at);
  else data.writeUInt8(value < 0 ? 0 : 1, at);
}

/** Numbers from -1 to 1 that look random and are the same for the same seed. */
function numbers(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return (state / 2_147_483_647) * 2 - 1;
  };
}
