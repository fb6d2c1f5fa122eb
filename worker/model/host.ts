/** The main thread's end of a tensor model's thread. */
import { openThread } from "../thread/guard.js";
import { place, SparedMemory, viewOf, type Pieces } from "./memory.js";
import type { GraphMetadata, PlainTensor, RunAnswer, RunRequest, ThreadOptions } from "./protocol.js";

/** What a run gave. Its outputs are views of memory that the next runs write into once it is let go of. */
export interface RunResult {
  readonly outputs: readonly PlainTensor[];
  readonly ranMs: number;
  /** Once, when everything of worth has been copied out of the outputs. */
  letGo(): void;
}

export interface ModelHost {
  readonly graph: GraphMetadata;
  /**
   * Runs are taken in order.
   * @param rows of the batch; undefined for a model without a batch dimension. @throws Error with the model's own reason.
   */
  run(inputs: readonly Pieces[], outputs: readonly string[], rows: number | undefined): Promise<RunResult>;
  close(): Promise<void>;
}

/** @throws Error when the model cannot be loaded. @param onFatal the thread is of no use any more. */
export async function startModel(options: ThreadOptions, onFatal: (reason: string) => void): Promise<ModelHost> {
  const module = new URL("./thread.js", import.meta.url);
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
