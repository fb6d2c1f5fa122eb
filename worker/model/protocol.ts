/** What passes between a worker's main thread and a model's thread. Tensors lie in memory that both see; only where is told. */
import type { Datatype } from "#shared/model/datatype.js";

export interface GraphTensor {
  readonly name: string;
  readonly datatype: Datatype;
  /** As the graph has them, batch dimension included; -1 is variable. */
  readonly dims: readonly number[];
}

export interface GraphMetadata {
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
}

export interface ThreadOptions {
  readonly modelFile: string;
  /** ONNX Runtime execution providers, in order of preference. */
  readonly providers: readonly string[];
  /** Threads inside one operator; 0 lets ONNX Runtime choose. */
  readonly intraOpThreads: number;
  readonly graphOptimization: "disabled" | "basic" | "extended" | "all";
}

/** Little-endian elements; BYTES elements each follow their u32 LE length. */
export interface PlainTensor {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** A tensor's place in memory that both ends see. */
export interface PlacedTensor extends Omit<PlainTensor, "data"> {
  readonly offset: number;
  readonly bytes: number;
}

export interface RunRequest {
  readonly inputs: readonly PlacedTensor[];
  /** Of the inputs; the thread has read it when it answers. */
  readonly memory: SharedArrayBuffer;
  readonly outputs: readonly string[];
  /** Dimension 0 of every output; undefined for a model without a batch dimension. */
  readonly rows: number | undefined;
  /** For the outputs, if it is large enough. */
  readonly into: SharedArrayBuffer;
}

export interface RunAnswer {
  readonly outputs: readonly PlacedTensor[];
  /** Of the outputs. */
  readonly memory: SharedArrayBuffer;
  /** Time inside the model alone. */
  readonly ranMs: number;
}
