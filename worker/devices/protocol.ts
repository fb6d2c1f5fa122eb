/** The messages between the main thread and the thread that tries providers. Types only. */
import type { Placement } from "../onnx/providers.js";
import type { TurnMemory } from "../onnx/turns.js";

export interface ProbeOptions {
  readonly turns: TurnMemory;
}

/** The place to try. The thread answers with an error if this place can compute nothing. */
export type ProbeRequest = Placement;
