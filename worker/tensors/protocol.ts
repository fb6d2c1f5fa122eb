/**
 * The messages between a worker's main thread and a tensor model's thread. Types only. The tensors
 * lie in memory that both threads see, so a message gives only their places.
 */
import type { Datatype } from "#shared/model/datatype.js";
import type { SessionOptions } from "../onnx/graph.js";

/** What the thread gets at its start. */
export interface TensorOptions extends SessionOptions {
  /**
   * How long each run takes at least, in ms, without the processor: the model then stands for a
   * device of that speed.
   */
  readonly executeDelayMs: number;
  /** Inputs that a run need not give; absent if there are none. */
  readonly optionalInputs?: readonly string[];
}

/**
 * A tensor with its data: little-endian elements. An element of BYTES follows its length, a
 * little-endian u32.
 */
export interface PlainTensor {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** A tensor's place in memory that both threads see. */
export interface PlacedTensor extends Omit<PlainTensor, "data"> {
  readonly offset: number;
  readonly bytes: number;
}

/** An output that a run must give. */
export interface WantedOutput {
  readonly name: string;
  /** The output's batch axis; undefined for a model without a batch axis. */
  readonly axis: number | undefined;
}

export interface RunRequest {
  readonly inputs: readonly PlacedTensor[];
  /** The memory of the inputs. The thread has read them when it answers. */
  readonly memory: SharedArrayBuffer;
  readonly outputs: readonly WantedOutput[];
  /** The size of every output's batch axis; undefined for a model without a batch axis. */
  readonly rows: number | undefined;
  /** Memory for the outputs, if it is large enough. */
  readonly into: SharedArrayBuffer;
  /** Of a run that the main thread may take back (`begin.ts`). */
  readonly begin: SharedArrayBuffer | undefined;
}

export interface RunAnswer {
  /** Undefined if the main thread has taken the run back. */
  readonly outputs: readonly PlacedTensor[] | undefined;
  /** The memory of the outputs. */
  readonly memory: SharedArrayBuffer;
  /** The model's time, in ms, without copying inputs and outputs. */
  readonly ranMs: number;
}
