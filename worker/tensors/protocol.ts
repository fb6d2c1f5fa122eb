/**
 * What passes between a worker's main thread and a tensor model's thread. Types only. The tensors
 * lie in memory that both threads see, so a message only says where.
 */
import type { Datatype } from "#shared/model/datatype.js";

/**
 * A tensor with its data: little-endian elements. An element of BYTES follows its length, which is
 * a little-endian u32.
 */
export interface PlainTensor {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** Where a tensor lies in memory that both threads see. */
export interface PlacedTensor extends Omit<PlainTensor, "data"> {
  readonly offset: number;
  readonly bytes: number;
}

/** An output that a run is to give. */
export interface WantedOutput {
  readonly name: string;
  /** Which of its axes is the batch; undefined for a model without one. */
  readonly axis: number | undefined;
}

export interface RunRequest {
  readonly inputs: readonly PlacedTensor[];
  /** Where the inputs lie. The thread has read them when it answers. */
  readonly memory: SharedArrayBuffer;
  readonly outputs: readonly WantedOutput[];
  /** How large the batch axis of every output is; undefined for a model without one. */
  readonly rows: number | undefined;
  /** Where the outputs are to be written, if it is large enough. */
  readonly into: SharedArrayBuffer;
}

export interface RunAnswer {
  readonly outputs: readonly PlacedTensor[];
  /** Where the outputs lie. */
  readonly memory: SharedArrayBuffer;
  /** Time that the model took, in ms, without copying its inputs and outputs. */
  readonly ranMs: number;
}
