/**
 * Turns a completed, validated configuration into the facts that a model's lanes run by
 * (`ServingModel`), and into the model's announcement to the fleet (`ServedModel`).
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import {
  kserveType,
  type ModelConfig,
  type SequenceBatching,
  type SequenceControl,
  type Uint64,
} from "#shared/model/config.js";
import { datatypeBytes, elementCount, type Datatype } from "#shared/model/datatype.js";
import type { Tensor } from "#shared/frame.js";
import { isDecoupled, iterationOf, type Iteration } from "../models/validate/iteration.js";
import { batchAxisOf } from "../onnx/batch-axis.js";
import type { GraphMetadata, GraphTensor } from "../onnx/graph.js";
import type { Batching } from "../lane/holdings.js";
import type { BatchLimits } from "./plan.js";
import { raggedOf, withoutAxis, type Ragged } from "./ragged.js";
import { reshapesOf, type ModelReshapes } from "./reshape.js";
import type { Layout } from "./stack.js";
import type { ModelHost } from "./host.js";

/**
 * An input that gives the model a request's place in its sequence. `corrid` is the correlation id;
 * the other kinds are true or false.
 */
export type Control =
  | {
      readonly kind: "start" | "ready" | "end";
      readonly tensor: string;
      readonly datatype: Datatype;
      /** The elements for false and for true, little-endian. */
      readonly values: { readonly no: Buffer; readonly yes: Buffer };
    }
  | { readonly kind: "corrid"; readonly tensor: string; readonly datatype: Datatype };

/** A state tensor: the model's `output` is its `input` at the sequence's next step. */
export interface StateSpec {
  readonly input: string;
  readonly output: string;
  readonly datatype: Datatype;
  /** Without the batch dimension; -1 is a variable size. */
  readonly dims: readonly number[];
  /**
   * The initial state of a sequence. If the model has a batch dimension, the shape includes 1 for
   * it.
   */
  readonly initialShape: readonly number[];
  readonly initial: Buffer;
}

export type Layouts = ReadonlyMap<string, Layout>;

/** A tensor model as its lanes run it. */
export interface ServingModel {
  readonly name: string;
  readonly version: string;
  readonly batching: Batching;
  /**
   * The graph's layout of each tensor, by name. A tensor without a layout has no batch axis, and
   * all requests of a batch share it.
   */
  readonly layouts: { readonly inputs: Layouts; readonly outputs: Layouts };
  /** Tensors whose shape in requests and answers is not the graph's; absent without any. */
  readonly reshapes?: ModelReshapes | undefined;
  /** Absent for a model without ragged batches. */
  readonly ragged?: Ragged | undefined;
  /** Inputs with the same value for all requests, each with one row if the input has rows. */
  readonly constants: readonly Tensor[];
  readonly limits: BatchLimits;
  /** Most sequences with a step in this worker at once; undefined for no limit. */
  readonly candidates?: number | undefined;
  readonly controls: readonly Control[];
  readonly states: readonly StateSpec[];
  /** How long a sequence may go without a step, in ms; undefined for a stateless model. */
  readonly maxIdleMs: number | undefined;
  /** How many checkpoints to keep of a sequence, the newest included. */
  readonly history: number;
  /** Undefined for a model that runs once for each request. */
  readonly iteration?: Iteration | undefined;
  /** Whether requests get any number of answers, each a record of a log; absent: one each. */
  readonly decoupled?: boolean;
  readonly host: ModelHost;
  /** Further instances of the model, each with a session and a thread; absent if there are none. */
  readonly others?: readonly ModelHost[];
}

/**
 * Says why the worker cannot serve a model. Strings have different lengths, so they cannot
 * interleave along an axis as numbers can.
 */
export function unsupported(config: ModelConfig, { inputs, outputs }: GraphMetadata): string | undefined {
  const woven = [...inputs, ...outputs].find(
    (tensor) => tensor.datatype === "BYTES" && (batchAxisOf(config, tensor) ?? 0) > 0,
  );
  return woven && `tensor '${woven.name}' of strings has its batch axis not first, which is not supported`;
}

type Direct = NonNullable<SequenceBatching["direct"]>;

/**
 * @param initialStates the bytes of initial states that lie in files, by the name of their input
 */
export function servingOf(
  config: ModelConfig,
  graph: GraphMetadata,
  { initialStates, constants }: { initialStates: ReadonlyMap<string, Buffer>; constants: readonly Tensor[] },
): Omit<ServingModel, "host" | "others" | "version"> {
  const batched = config.max_batch_size > 0;
  const sequence = config.sequence_batching;
  const ragged = raggedOf(config);
  const layouts = { inputs: layoutsOf(config, graph.inputs), outputs: layoutsOf(config, graph.outputs) };
  return {
    name: config.name,
    batching: { batched, shared: sharedInputs(config, layouts.inputs), ragged: ragged?.inputs },
    layouts,
    ragged,
    reshapes: reshapesOf(config),
    constants,
    limits: batchLimits(config),
    candidates: candidates(config),
    controls: sequence === undefined ? [] : controls(sequence),
    states: sequence === undefined ? [] : states(sequence, batched, initialStates),
    maxIdleMs: sequence && maxIdleMs(sequence),
    history: historyOf(config),
    iteration: iterationOf(config),
    ...(isDecoupled(config) && { decoupled: true }),
  };
}

/**
 * @param digest of the facts that decide the model's answers
 * @param printed the configuration for clients to see
 * @param instances how many batches a worker runs at once
 */
export function servedOf(
  config: ModelConfig,
  graph: GraphMetadata,
  version: string,
  digest: string,
  printed: Record<string, unknown>,
  instances = 1,
): ServedModel {
  const sequence = config.sequence_batching;
  const corrid = sequence && controls(sequence).find(({ kind }) => kind === "corrid");
  const shared = sharedInputs(config, layoutsOf(config, graph.inputs));
  const inputSpec = (input: ModelConfig["input"][number]) => {
    const tensor = [...graph.inputs, ...(graph.initializers ?? [])].find(({ name }) => name === input.name);
    const dims = tensor?.dims.length === 0 ? [] : [...input.dims];
    return {
      ...specOf(input),
      dims,
      ...(shared.has(input.name) && { shared: true }),
      ...(input.optional && { optional: true }),
    };
  };
  return {
    name: config.name,
    version,
    platform: config.platform || config.backend,
    maxBatchSize: config.max_batch_size,
    inputs: config.input.map(inputSpec),
    outputs: config.output.map(specOf),
    ...(isDecoupled(config) && { decoupled: true }),
    ...(sequence && {
      sequence: {
        maxIdleMs: maxIdleMs(sequence),
        ...(sequence.iterative_sequence && { iterative: true }),
        ...(startsImplicitly(config) && { implicitStart: true }),
        history: historyOf(config),
        ...takesStatesOf(config),
        ...(corrid && { corrid: { tensor: corrid.tensor, datatype: corrid.datatype } }),
      },
    }),
    ...(config.response_cache?.enable === true && { cachesAnswers: true }),
    takes: Math.min(takenAtOnce(config, instances), candidates(config) ?? Infinity),
    config: printed,
    digest,
  };
}

/** A tensor of the configuration, for the announcement. */
export function specOf({ name, data_type, dims }: Pick<ModelConfig["input"][number], "name" | "data_type" | "dims">) {
  return { name, datatype: kserveType(data_type), dims: [...dims] };
}

/** A batch runs and a batch waits, unless the requests that run come again. */
function takenAtOnce(config: ModelConfig, instances: number): number {
  const places = instances * Math.max(1, batchLimits(config).maxBatchSize);
  return iterationOf(config) === undefined ? 2 * places : places;
}

function layoutsOf(config: ModelConfig, tensors: readonly GraphTensor[]): Layouts {
  const ragged = raggedOf(config);
  const without = ragged === undefined ? new Set() : withoutAxis(ragged);
  return new Map(
    tensors.flatMap((tensor): [string, Layout][] => {
      const axis = without.has(tensor.name) ? undefined : batchAxisOf(config, tensor);
      return axis === undefined ? [] : [[tensor.name, { axis, bare: tensor.dims.length === 1 }]];
    }),
  );
}

/** The inputs that requests give without rows, although the model has batches. */
function sharedInputs(config: ModelConfig, layouts: Layouts): ReadonlySet<string> {
  const inputs = config.max_batch_size > 0 ? config.input.filter((input) => !input.allow_ragged_batch) : [];
  const names = inputs.map(({ name }) => name);
  return new Set(names.filter((name) => !layouts.has(name)));
}

/** The slots of Triton's oldest strategy; undefined without a number in the configuration. */
function candidates({ sequence_batching }: ModelConfig): number | undefined {
  const most = sequence_batching?.oldest?.max_candidate_sequences ?? 0;
  return most > 0 ? most : undefined;
}

/** Without a scheduler in the configuration, every request runs by itself, as in Triton. */
function batchLimits({ max_batch_size, dynamic_batching, sequence_batching }: ModelConfig): BatchLimits {
  if (sequence_batching !== undefined) {
    const { direct, oldest } = sequence_batching;
    // The slots of the direct strategy bind a sequence to an instance. Here no worker owns a
    // sequence.
    return {
      maxBatchSize: max_batch_size,
      ...(direct === undefined
        ? {
            maxDelayMs: milliseconds(oldest?.max_queue_delay_microseconds ?? 0),
            preferred: ascending(oldest?.preferred_batch_size ?? []),
          }
        : directLimits(direct, max_batch_size)),
    };
  }
  if (dynamic_batching === undefined) return { maxBatchSize: 1, maxDelayMs: 0, preferred: [] };
  return {
    maxBatchSize: max_batch_size,
    maxDelayMs: milliseconds(dynamic_batching.max_queue_delay_microseconds),
    preferred: ascending(dynamic_batching.preferred_batch_size),
  };
}

/** A 32-bit 0.3 is a little more than 0.3, but 0.3 of ten rows must be three rows. */
const FLOAT_ERROR = 1e-4;

/**
 * Limits of Triton's direct strategy. The delay counts only if the configuration has a minimum
 * utilisation. A batch that reaches the minimum runs at once.
 */
function directLimits(
  { max_queue_delay_microseconds: delay, minimum_slot_utilization: utilization }: Direct,
  maxBatchSize: number,
): Omit<BatchLimits, "maxBatchSize"> {
  if (utilization === 0) return { maxDelayMs: 0, preferred: [] };
  const enough = Math.max(1, Math.ceil(utilization * maxBatchSize - FLOAT_ERROR));
  return { maxDelayMs: milliseconds(delay), preferred: [], enough };
}

function ascending(sizes: readonly number[]): number[] {
  return [...sizes].sort((a, b) => a - b);
}

function milliseconds(microseconds: Uint64): number {
  return Number(microseconds) / 1_000;
}

/** Redis counts whole milliseconds, and does not take 2^64-1 µs, which stands for "never". */
function maxIdleMs({ max_sequence_idle_microseconds }: SequenceBatching): number {
  return Math.min(Math.max(1, Math.ceil(milliseconds(max_sequence_idle_microseconds))), MAX_IDLE_MS);
}

/** Reading the configuration has refused all values but whole numbers. */
export function historyOf({ parameters }: ModelConfig): number {
  return Number(parameters["checkpoint_history"]?.string_value ?? 1);
}

/** Whether the first request of an unknown id begins a sequence without START. */
export function startsImplicitly({ parameters }: ModelConfig): boolean {
  return parameters["implicit_start"]?.string_value === "true";
}

/** Reading the configuration has refused all values but lists of versions. */
export function takesStatesOf({ parameters }: ModelConfig): { readonly takesStatesOf?: string[] } {
  const versions = parameters["takes_states_of"]?.string_value;
  return versions === undefined ? {} : { takesStatesOf: versions.split(",") };
}

/** A hundred years, in ms. */
const MAX_IDLE_MS = 100 * 365 * 24 * 3_600_000;

const booleanKinds = {
  CONTROL_SEQUENCE_START: "start",
  CONTROL_SEQUENCE_READY: "ready",
  CONTROL_SEQUENCE_END: "end",
} as const;

function controls({ control_input }: SequenceBatching): Control[] {
  return control_input.flatMap(({ name: tensor, control }) =>
    control.map((one): Control => {
      if (one.kind === "CONTROL_SEQUENCE_CORRID") {
        return { kind: "corrid", tensor, datatype: kserveType(one.data_type) };
      }
      return { kind: booleanKinds[one.kind], tensor, ...booleanControl(one) };
    }),
  );
}

function booleanControl({ int32_false_true, fp32_false_true, bool_false_true }: SequenceControl) {
  if (int32_false_true.length > 0) return pair("INT32", int32_false_true, (value, bytes) => bytes.writeInt32LE(value));
  if (fp32_false_true.length > 0) return pair("FP32", fp32_false_true, (value, bytes) => bytes.writeFloatLE(value));
  return pair("BOOL", bool_false_true, (value, bytes) => bytes.writeUInt8(value ? 1 : 0));
}

function pair<Value>(datatype: Datatype, falseTrue: readonly Value[], write: (value: Value, bytes: Buffer) => void) {
  const [no, yes] = falseTrue.map((value) => {
    const bytes = Buffer.alloc(datatypeBytes[datatype]);
    write(value, bytes);
    return bytes;
  });
  if (no === undefined || yes === undefined) throw new RangeError("a control needs a value for false and one for true");
  return { datatype, values: { no, yes } };
}

/**
 * Without an initial state in the configuration, the state begins with zeros. Triton promises less:
 * its first state is then uninitialised memory.
 */
function states({ state }: SequenceBatching, batched: boolean, files: ReadonlyMap<string, Buffer>): StateSpec[] {
  return state.map(({ input_name, output_name, data_type, dims, initial_state: [initial] }) => {
    const datatype = kserveType(data_type);
    const fixed = initial?.dims ?? dims.map((dim) => (dim === -1 ? 1 : dim));
    // A zero of BYTES is an empty string: its length prefix, four zero bytes.
    const bytes = elementCount(fixed) * (datatype === "BYTES" ? 4 : datatypeBytes[datatype]);
    return {
      input: input_name,
      output: output_name,
      datatype,
      dims,
      initialShape: batched ? [1, ...fixed] : fixed,
      initial: files.get(input_name) ?? Buffer.alloc(bytes),
    };
  });
}
