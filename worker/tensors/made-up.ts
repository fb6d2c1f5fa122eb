/**
 * Requests without a client, for a model's runs before it serves. They take the way of any other
 * batch, from controls and states to outcomes.
 */
import { hasRows, type ServedModel, type TensorSpec } from "#shared/contract/announcement.js";
import { readOutcome } from "#shared/contract/outcome.js";
import { encodeCorrelationId } from "#shared/contract/sequence.js";
import type { Tensor } from "#shared/frame.js";
import { datatypeBytes, elementCount, type Datatype } from "#shared/model/datatype.js";
import { sequenceName } from "#shared/queue/address.js";
import { noRuns, type Held } from "../lane/holdings.js";
import type { Settled } from "../lane/settle.js";
import { execute } from "./execute.js";
import type { ServingModel } from "./serving.js";

/** No checkpoint is written, so its size does not matter. */
export const withoutLimit = { maxStateBytes: Number.MAX_SAFE_INTEGER } as const;

/** Runs one batch. */
export async function runMadeUp(model: ServingModel, batch: readonly Held[]): Promise<Settled[]> {
  return (await execute(model, batch, withoutLimit)).settlements();
}

/** @returns the text of the error that a request ended in; undefined if the request succeeded */
export function errorOf({ outcome: { kind, body } }: Settled): string | undefined {
  const outcome = readOutcome(kind, body);
  return outcome.kind === "error" ? outcome.message : undefined;
}

export interface MadeUp {
  readonly sequence: number;
  readonly step: number;
  /** Number of the step that ends the sequence. */
  readonly last: number;
  /** The size for every variable dimension. */
  readonly size: number;
}

/** @returns a request as the queue would give it */
export function madeUp(
  served: ServedModel,
  { sequence, step, last, size }: MadeUp,
  states: readonly Tensor[] | undefined,
): Held {
  const { inputs, outputs, sequence: remembers, maxBatchSize, name, version, digest } = served;
  // Requests share a batch only if their inputs without a batch axis are equal. So the values of
  // such inputs depend on the step alone.
  const tensors = inputs.map((spec) => {
    const own = hasRows({ maxBatchSize }, spec);
    return tensorOf(spec, own, size, numbers(own ? sequence * last + step : step));
  });
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
      tellsBegin: false,
      start: step === 1,
      end: step === last,
      brief: false,
      deadlineAt: Infinity,
      gateway: "",
      outcomeTtlMs: 0,
      from: "",
      frame: Buffer.alloc(0),
    },
    request: { meta: { outputs: outputs.map((output) => output.name) }, tensors },
    arrivedAt: 0,
    admittedAt: 0,
    expiresAt: Infinity,
    rows: 1,
    shapeKey: "",
    sequence: undefined,
    job: false,
    state: Promise.resolve({ kind: "found", tensors: states }),
    before: noRuns,
  };
}

function tensorOf({ name, datatype, dims }: TensorSpec, batched: boolean, size: number, random: () => number): Tensor {
  const own = dims.map((dim) => (dim === -1 ? size : dim));
  return randomTensor(name, datatype, batched ? [1, ...own] : own, random);
}

/** A tensor of numbers that every model takes: see `writeElement`. */
export function randomTensor(name: string, datatype: Datatype, shape: readonly number[], random = numbers(0)): Tensor {
  // A string of one digit, after its length.
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
