/** The main thread's end of a tensor model's thread. */
import { openThread } from "../thread/guard.js";
import type { Begin } from "./begin.js";
import { place, SparedMemory, viewOf, type Pieces } from "./memory.js";
import type { GraphMetadata } from "../onnx/graph.js";
import type { PlainTensor, RunAnswer, RunRequest, TensorOptions, WantedOutput } from "./protocol.js";

/**
 * The result of a run. The outputs are views of memory, which later runs overwrite after `letGo`.
 */
export interface RunResult {
  readonly outputs: readonly PlainTensor[];
  readonly ranMs: number;
  /** Gives the memory back. To be called once, after copying from the outputs. */
  letGo(): void;
}

export interface ModelHost {
  readonly graph: GraphMetadata;
  /**
   * Runs the model once, in the order of the calls.
   *
   * @param inputs all inputs of the graph; this copies their data before it returns its promise
   * @param rows of the batch; undefined for a model without a batch axis
   * @param begin lets the caller take the run back before it begins
   * @returns undefined if the caller has taken the run back
   * @throws Error with the model's own reason
   */
  run(
    inputs: readonly Pieces[],
    outputs: readonly WantedOutput[],
    rows: number | undefined,
    begin?: Begin,
  ): Promise<RunResult | undefined>;
  close(): Promise<void>;
}

/**
 * Starts the thread of a model.
 *
 * @param onFatal runs when the thread hangs or dies; the thread is then of no more use
 * @throws Error if the model cannot load
 */
export async function startModel(options: TensorOptions, onFatal: (reason: string) => void): Promise<ModelHost> {
  const module = new URL("./thread/thread.js", import.meta.url);
  const thread = await openThread<RunRequest, GraphMetadata, RunAnswer>(module, options, (reason) =>
    onFatal(`model: ${reason}`),
  );
  const spared = new SparedMemory();
  return {
    graph: thread.ready,
    async run(inputs, outputs, rows, begin) {
      const { memory, placed } = place(inputs, spared.take());
      try {
        const asked = { inputs: placed, memory, outputs, rows, into: spared.take(), begin: begin?.memory };
        const { answer } = await thread.ask(asked);
        if (answer.outputs === undefined) {
          spared.giveBack(answer.memory);
          return undefined;
        }
        return {
          outputs: answer.outputs.map((output) => viewOf(output, answer.memory)),
          ranMs: answer.ranMs,
          letGo: () => spared.giveBack(answer.memory),
        };
      } finally {
        spared.giveBack(memory);
      }
    },
    close: () => thread.close(),
  };
}
