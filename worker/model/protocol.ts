/** What passes between a worker's main thread and a model's thread. Buffers are transferred, not copied. */
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
  readonly data: Uint8Array<ArrayBuffer>;
}

export interface RunRequest {
  readonly inputs: readonly PlainTensor[];
  readonly outputs: readonly string[];
}

export interface RunAnswer {
  readonly outputs: readonly PlainTensor[];
  /** Time inside the model alone. */
  readonly ranMs: number;
}
