/** What passes between the main thread and the thread that tries providers. Types only. */
import type { Placement } from "../onnx/providers.js";
import type { TurnMemory } from "../onnx/turns.js";

export interface ProbeOptions {
  readonly turns: TurnMemory;
}

/** Answered with an error where nothing can be computed there. */
export type ProbeRequest = Placement;
