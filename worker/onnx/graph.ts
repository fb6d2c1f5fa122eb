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
  /** Inputs that a request may leave out, because the graph has a value for them. */
  readonly initializers?: readonly GraphTensor[];
}

export interface SessionOptions {
  readonly modelFile: string;
  readonly placement: Placement;
  /** The memory by which threads of this process take turns on a GPU that takes one at a time. */
  readonly turns: TurnMemory;
  /** Threads inside one operator; 0 lets ONNX Runtime choose. */
  readonly intraOpThreads: number;
  /** Threads for operators side by side; absent or 0 lets ONNX Runtime choose. */
  readonly interOpThreads?: number;
  /** Whether operators that do not need each other run side by side; absent: they do not. */
  readonly executionMode?: "sequential" | "parallel" | undefined;
  /** Whether the runtime keeps memory on the CPU for later runs; absent for its default. */
  readonly memoryArena?: boolean | undefined;
  /** Whether the runtime plans a run's memory from earlier runs; absent for its default. */
  readonly memoryPattern?: boolean | undefined;
  readonly graphOptimization: "disabled" | "basic" | "extended" | "all";
}
