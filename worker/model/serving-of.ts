/** Turns a completed, validated configuration into what a lane runs by and what the fleet is told. Pure. */
import type { ServedModel } from "#shared/contract/announcement.js";
import {
  kserveType,
  type ModelConfig,
  type SequenceBatching,
  type SequenceControl,
  type Uint64,
} from "#shared/model/config.js";
import { datatypeBytes, elementCount, type Datatype } from "#shared/model/datatype.js";
import type { BatchLimits } from "../batch/plan.js";
import type { Control, ServingModel, StateSpec } from "./serving.js";

/** Auto-complete adds a reshape for a tensor that has no dimension beside the batch's. */
export function unsupported({ input, output }: ModelConfig): string | undefined {
  const reshaped = [...input, ...output].find(({ reshape }) => reshape !== undefined);
  const why = "one of its dimensions has to be the model's own";
  return reshaped && `tensor '${reshaped.name}' has the batch dimension alone, which is not supported: ${why}`;
}

type Direct = NonNullable<SequenceBatching["direct"]>;

/** @param initialStates bytes of `data_file` initial states by state input name. */
export function servingOf(
  config: ModelConfig,
  initialStates: ReadonlyMap<string, Buffer>,
): Omit<ServingModel, "host" | "version"> {
  const batched = config.max_batch_size > 0;
  const sequence = config.sequence_batching;
  return {
    name: config.name,
    batched,
    limits: batchLimits(config),
    controls: sequence === undefined ? [] : controls(sequence),
    states: sequence === undefined ? [] : states(sequence, batched, initialStates),
    maxIdleMs: sequence && maxIdleMs(sequence),
  };
}

export function servedOf(
  config: ModelConfig,
  version: string,
  digest: string,
  printed: Record<string, unknown>,
): ServedModel {
  const sequence = config.sequence_batching;
  const corrid = sequence && controls(sequence).find(({ kind }) => kind === "corrid");
  const spec = ({ name, data_type, dims }: ModelConfig["input"][number] | ModelConfig["output"][number]) => ({
    name,
    datatype: kserveType(data_type),
    dims: [...dims],
  });
  return {
    name: config.name,
    version,
    platform: config.platform || config.backend,
    maxBatchSize: config.max_batch_size,
    inputs: config.input.map(spec),
    outputs: config.output.map(spec),
    ...(sequence && {
      sequence: {
        maxIdleMs: maxIdleMs(sequence),
        ...(corrid && { corrid: { tensor: corrid.tensor, datatype: corrid.datatype } }),
      },
    }),
    config: printed,
    digest,
  };
}

/** spec/dynamic-batching.md section 1: without a scheduler block every request is its own execution. */
function batchLimits({ max_batch_size, dynamic_batching, sequence_batching }: ModelConfig): BatchLimits {
  if (sequence_batching !== undefined) {
    const { direct, oldest } = sequence_batching;
    // Direct's slots are of no use to a fleet, where no worker owns a sequence.
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

/** 0.3 as a float is a little more than 0.3, and three of ten rows must do. */
const FLOAT_ERROR = 1e-4;

/** The delay counts only with a utilisation to reach; a batch that reaches it goes at once. */
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

/** Redis counts whole milliseconds, and a "never" of 2^64-1 µs is beyond what it takes. */
function maxIdleMs({ max_sequence_idle_microseconds }: SequenceBatching): number {
  return Math.min(Math.max(1, Math.ceil(milliseconds(max_sequence_idle_microseconds))), MAX_IDLE_MS);
}

/** A hundred years. */
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

/** Zeros where nothing is said: stronger than Triton, whose first state is then uninitialised memory. */
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
      initialShape: batched ? [1, ...fixed] : fixed,
      initial: files.get(input_name) ?? Buffer.alloc(bytes),
    };
  });
}
