/** Inputs and outputs of a model's graph, and the options of a session. Types only. */
import type { Datatype } from "#shared/model/datatype.js";
import type { Placement } from "./providers.js";
import type { TurnMemory } from "./turns.js";

export interface GraphTensor {
  readonly name: string;
  readonly datatype: Datatype;
  /** As in the graph, with the batch dimension; -1 stands for any size. */
  readonly dims: readonly number[];
  /** The graph's names for sizes, by axis; absent if the graph names no size. */
  readonly symbols?: readonly (string | undefined)[];
}

export interface GraphMetadata {
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
  /** Initializers that a request may override. The Node API of ONNX Runtime does not name them. */
  readonly initializers?: readonly GraphTensor[];
}

export interface SessionOptions {
  readonly modelFile: string;
  readonly placement: Placement;
  /** The memory by which threads of this process take turns on a GPU that takes one at a time. */
  readonly turns: TurnMemory;
  /** Threads inside one operator; 0 lets ONNX Runtime choose. */
  readonly intraOpThreads: number;
  readonly graphOptimization: "disabled" | "basic" | "extended" | "all";
}
