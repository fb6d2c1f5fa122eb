/** What a model's graph takes and gives, and how a session on it is opened. Types only. */
import type { Datatype } from "#shared/model/datatype.js";
import type { Placement } from "./providers.js";
import type { TurnMemory } from "./turns.js";

export interface GraphTensor {
  readonly name: string;
  readonly datatype: Datatype;
  /** As in the graph, with the batch dimension; -1 stands for any size. */
  readonly dims: readonly number[];
  /** The names that the graph gives to sizes, by axis; absent where it names none. */
  readonly symbols?: readonly (string | undefined)[];
}

export interface GraphMetadata {
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
  /** Initializers that a request may override; the Node API of ONNX Runtime does not name them. */
  readonly initializers?: readonly GraphTensor[];
}

export interface SessionOptions {
  readonly modelFile: string;
  readonly placement: Placement;
  /** What the threads of this process take turns by, where they share a GPU that needs it. */
  readonly turns: TurnMemory;
  /** Threads inside one operator; 0 lets ONNX Runtime choose. */
  readonly intraOpThreads: number;
  readonly graphOptimization: "disabled" | "basic" | "extended" | "all";
}
