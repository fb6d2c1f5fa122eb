/** The main thread's end of a tensor model's thread. */
import { openThread } from "../thread/guard.js";
import type { GraphMetadata, PlainTensor, RunAnswer, RunRequest, ThreadOptions } from "./protocol.js";

export interface ModelHost {
  readonly graph: GraphMetadata;
  /** Runs are taken in order. @throws Error with the model's own reason. */
  run(inputs: readonly PlainTensor[], outputs: readonly string[]): Promise<RunAnswer>;
  close(): Promise<void>;
}

/** @throws Error when the model cannot be loaded. @param onFatal the thread is of no use any more. */
export async function startModel(options: ThreadOptions, onFatal: (reason: string) => void): Promise<ModelHost> {
  const module = new URL("./thread.js", import.meta.url);
  const thread = await openThread<RunRequest, GraphMetadata, RunAnswer>(module, options, (reason) =>
    onFatal(`model: ${reason}`),
  );
  return {
    graph: thread.ready,
    async run(inputs, outputs) {
      const { answer } = await thread.ask({ inputs, outputs }, [...new Set(inputs.map(({ data }) => data.buffer))]);
      return answer;
    },
    close: () => thread.close(),
  };
}
