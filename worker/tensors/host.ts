/** The main thread's end of a tensor model's thread. */
import { openThread } from "../thread/guard.js";
import { place, SparedMemory, viewOf, type Pieces } from "./memory.js";
import type { GraphMetadata, SessionOptions } from "../onnx/graph.js";
import type { PlainTensor, RunAnswer, RunRequest, WantedOutput } from "./protocol.js";

/** What a run gave. Its outputs are views of memory, which later runs write into after `letGo`. */
export interface RunResult {
  readonly outputs: readonly PlainTensor[];
  readonly ranMs: number;
  /** Gives the memory back. Called once, when what is needed has been copied out of the outputs. */
  letGo(): void;
}

export interface ModelHost {
  readonly graph: GraphMetadata;
  /**
   * Runs the model once; runs are taken in the order of the calls.
   *
   * @param inputs all inputs of the graph; their data are copied before this returns its promise
   * @param rows of the batch; undefined for a model without a batch axis
   * @throws Error with the model's own reason
   */
  run(inputs: readonly Pieces[], outputs: readonly WantedOutput[], rows: number | undefined): Promise<RunResult>;
  close(): Promise<void>;
}

/**
 * Starts the thread of a model.
 *
 * @param onFatal is called when the thread hangs or dies; it is of no use any more
 * @throws Error when the model cannot be loaded
 */
export async function startModel(options: SessionOptions, onFatal: (reason: string) => void): Promise<ModelHost> {
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
