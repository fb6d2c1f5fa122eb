/**
 * What the state of a sequence must be like, tensor by tensor. A client may bring a state of any
 * bytes, and a state stands beside those of other sequences in a batch, where one row too many
 * would give each later sequence the state of another. So gateways compare a state that a client
 * brings, and workers each state that they read or that a model gives, with the same function.
 */
import { z } from "zod";
import type { Tensor } from "../frame.js";
import { kserveType, type DataType } from "../model/config.js";
import { datatypeBytes, elementCount, type Datatype } from "../model/datatype.js";
import { elementFault } from "../model/strings.js";
import { hasItsBytes } from "../model/tensor-bytes.js";
import type { ServedModel } from "./announcement.js";

/** What a configuration says of one tensor of a state. */
export interface StateShape {
  /** The graph's input, whose name the tensor of a checkpoint has. */
  readonly input: string;
  readonly datatype: Datatype;
  /** Without the batch dimension; -1 is a variable one. */
  readonly dims: readonly number[];
}

/**
 * @param batched whether the model has a batch axis, which is the first one here
 * @returns why these tensors are no state of such a model, as the end of a sentence about the
 * state; undefined if they are one
 */
export function statesFault(
  states: readonly StateShape[],
  batched: boolean,
  tensors: readonly Tensor[],
): string | undefined {
  if (tensors.length !== states.length) {
    return `has ${tensors.length} tensors, and the model has ${states.length} states`;
  }
  for (const [i, state] of states.entries()) {
    const tensor = tensors[i];
    const fault = tensor && stateFault(state, batched, tensor);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function stateFault({ input, datatype, dims }: StateShape, batched: boolean, tensor: Tensor): string | undefined {
  const { shape } = tensor;
  if (tensor.name !== input) return `has a tensor '${tensor.name}' in the place of state '${input}'`;
  if (tensor.datatype !== datatype) return `has '${input}' of ${tensor.datatype}, and ${datatype} is wanted`;
  const wanted = batched ? [1, ...dims] : dims;
  // A graph's scalar has no dims, but a configuration has to say some: [1].
  const scalar = !batched && shape.length === 0 && dims.every((dim) => dim === 1);
  if (!scalar && !(shape.length === wanted.length && wanted.every((dim, i) => dim === -1 || dim === shape[i]))) {
    return `has '${input}' of the shape [${shape.join(",")}], and [${wanted.join(",")}] is wanted`;
  }
  if (!hasItsBytes(tensor)) return `has '${input}' of other bytes than its shape makes`;
  const found = datatype === "BYTES" ? elementFault(tensor.data) : undefined;
  return found && `has '${input}', whose string ${found.index} ${found.fault}`;
}

/** What decides whether a conversation's tokens fit a generator. */
export interface HistoryLimits {
  readonly contextLength: number;
  readonly vocabSize: number;
}

/** The state of a conversation is its tokens, an INT32 tensor of the shape `[length]`. */
export function historyTensor(tokens: Int32Array): Tensor {
  const data = Buffer.from(tokens.buffer, tokens.byteOffset, tokens.byteLength);
  return { name: HISTORY.input, datatype: HISTORY.datatype, shape: [tokens.length], data };
}

const HISTORY = { input: "history", datatype: "INT32", dims: [-1] } as const satisfies StateShape;

/** @returns the tokens of a conversation, or why the tensors are none that this generator takes */
export function historyOf(
  tensors: readonly Tensor[],
  { contextLength, vocabSize }: HistoryLimits,
): Int32Array | string {
  const fault = statesFault([HISTORY], false, tensors);
  if (fault !== undefined) return fault;
  const [{ data }] = tensors as readonly [Tensor];
  const length = data.length / 4;
  // A conversation that fills the context is whole; its next turn is refused as too long.
  if (length > contextLength) return `has ${length} tokens, and the model takes ${contextLength}`;
  const tokens = Int32Array.from({ length }, (_, i) => data.readInt32LE(4 * i));
  const strange = tokens.find((token) => token < 0 || token >= vocabSize);
  return strange === undefined ? tokens : `has the token ${strange}, which the model does not know`;
}

/** The states that a worker announces within a model's configuration. */
const announced = z.object({
  sequence_batching: z
    .object({
      state: z.array(z.object({ input_name: z.string(), data_type: z.custom<DataType>(), dims: z.array(z.number()) })),
    })
    .optional(),
});

/**
 * Compares a state that a client brings with the model under which its sequence is to go on.
 *
 * @param maxBytes most bytes of all tensors together
 * @returns why it cannot go on with them, as `statesFault`
 */
export function carriedStateFault(
  model: ServedModel,
  tensors: readonly Tensor[],
  maxBytes: number,
): string | undefined {
  const bytes = tensors.reduce((sum, tensor) => sum + Math.max(tensor.data.length, extentOf(tensor)), 0);
  if (bytes > maxBytes) return `would exceed ${maxBytes} bytes`;
  if (model.generator !== undefined) {
    const history = historyOf(tensors, model.generator);
    return typeof history === "string" ? history : undefined;
  }
  const { sequence_batching: sequence } = announced.parse(model.config);
  const states = (sequence?.state ?? []).map(({ input_name: input, data_type, dims }) => {
    return { input, datatype: kserveType(data_type), dims };
  });
  return statesFault(states, model.maxBatchSize > 0, tensors);
}

/**
 * The bytes that a tensor would have if its dimensions of 0 were 1. A shape such as [0, 2^50] has
 * no bytes, and makes a model and our own loops count to 2^50 all the same.
 */
function extentOf({ datatype, shape }: Tensor): number {
  return elementCount(shape.map((dim) => Math.max(1, dim))) * Math.max(1, datatypeBytes[datatype]);
}
