/**
 * Checks a sequence's state, tensor by tensor. A client may import a state of any bytes. In a batch
 * the states of several sequences lie side by side, and an extra row would give each later sequence
 * another sequence's state. So gateways check imported states, and workers check each state that
 * they read or that a model returns, with the same function.
 */
import { z } from "zod";
import type { Tensor } from "../frame.js";
import { kserveType, type DataType } from "../model/config.js";
import { datatypeBytes, elementCount, type Datatype } from "../model/datatype.js";
import { elementFault } from "../model/strings.js";
import { hasItsBytes } from "../model/tensor-bytes.js";
import type { ServedModel } from "./announcement.js";

/** A tensor of a state, from the model's configuration. */
export interface StateShape {
  /** The graph's input, whose name the tensor of a checkpoint has. */
  readonly input: string;
  readonly datatype: Datatype;
  /** Without the batch dimension; -1 is a variable dimension. */
  readonly dims: readonly number[];
}

/**
 * @param batched whether the model has a batch axis, which comes first here
 * @returns why these tensors are no state of such a model, as the end of a sentence about the
 *   state; undefined for a valid state
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
  // A graph's scalar has no dims, but a configuration must give some: [1].
  const scalar = !batched && shape.length === 0 && dims.every((dim) => dim === 1);
  if (!scalar && !(shape.length === wanted.length && wanted.every((dim, i) => dim === -1 || dim === shape[i]))) {
    return `has '${input}' of the shape [${shape.join(",")}], and [${wanted.join(",")}] is wanted`;
  }
  if (!hasItsBytes(tensor)) return `has '${input}' of other bytes than its shape makes`;
  const found = datatype === "BYTES" ? elementFault(tensor.data) : undefined;
  return found && `has '${input}', whose string ${found.index} ${found.fault}`;
}

/** The limits that decide whether a conversation's tokens fit a generator. */
export interface HistoryLimits {
  readonly contextLength: number;
  readonly vocabSize: number;
}

/** The state of a conversation: its tokens, as an INT32 tensor of the shape `[length]`. */
export function historyTensor(tokens: Int32Array): Tensor {
  const data = Buffer.from(tokens.buffer, tokens.byteOffset, tokens.byteLength);
  return { name: HISTORY.input, datatype: HISTORY.datatype, shape: [tokens.length], data };
}

const HISTORY = { input: "history", datatype: "INT32", dims: [-1] } as const satisfies StateShape;

/** @returns the tokens of a conversation, or why this generator cannot take the tensors */
export function historyOf(
  tensors: readonly Tensor[],
  { contextLength, vocabSize }: HistoryLimits,
): Int32Array | string {
  const fault = statesFault([HISTORY], false, tensors);
  if (fault !== undefined) return fault;
  const [{ data }] = tensors as readonly [Tensor];
  const length = data.length / 4;
  // A conversation may fill the context. Only its next turn is too long.
  if (length > contextLength) return `has ${length} tokens, and the model takes ${contextLength}`;
  const tokens = Int32Array.from({ length }, (_, i) => data.readInt32LE(4 * i));
  const strange = tokens.find((token) => token < 0 || token >= vocabSize);
  return strange === undefined ? tokens : `has the token ${strange}, which the model does not know`;
}

/** The states in a model's announced configuration. */
const announced = z.object({
  sequence_batching: z
    .object({
      state: z.array(z.object({ input_name: z.string(), data_type: z.custom<DataType>(), dims: z.array(z.number()) })),
    })
    .optional(),
});

/**
 * Compares an imported state with the model that will continue the sequence.
 *
 * @param maxBytes most bytes of all tensors together
 * @returns why the model cannot continue with the state, as `statesFault`
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
  const ofSteps = model.sequence?.states;
  if (ofSteps !== undefined) return statesFault(ofSteps, false, tensors);
  return statesFault(configuredStates(model), model.maxBatchSize > 0, tensors);
}

function configuredStates({ config }: ServedModel): StateShape[] {
  const { sequence_batching: sequence } = announced.parse(config);
  return (sequence?.state ?? []).map(({ input_name: input, data_type, dims }) => {
    return { input, datatype: kserveType(data_type), dims };
  });
}

/**
 * The bytes of a tensor if its dimensions of 0 were 1. A shape such as [0, 2^50] has no bytes, but
 * would make a model and Baton's own loops count to 2^50.
 */
function extentOf({ datatype, shape }: Tensor): number {
  return elementCount(shape.map((dim) => Math.max(1, dim))) * Math.max(1, datatypeBytes[datatype]);
}
