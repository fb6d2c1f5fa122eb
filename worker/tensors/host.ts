/** The main thread's end of a tensor model's thread. */
import { openThread } from "../thread/guard.js";
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
   * @throws Error with the model's own reason
   */
  run(inputs: readonly Pieces[], outputs: readonly WantedOutput[], rows: number | undefined): Promise<RunResult>;
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
    async run(inputs, outputs, rows) {
      const { memory, placed } = place(inputs, spared.take());
      try {
        const { answer } = await thread.ask({ inputs: placed, memory, outputs, rows, into: spared.take() });
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
