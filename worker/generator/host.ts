/** The main thread's end of a generator's thread. */
import { openThread } from "../thread/guard.js";
import type { GeneratorFacts, GeneratorOptions, IterateRequest, Iteration, NewGeneration } from "./protocol.js";

export interface GeneratorHost {
  readonly facts: GeneratorFacts;
  /** @param only compute this request alone. @throws Error when the engine itself failed, which is the end of it */
  iterate(add: readonly NewGeneration[], remove: readonly string[], only?: string): Promise<Iteration>;
  close(): Promise<void>;
}

/** @throws Error when the model cannot be loaded. @param onFatal the thread is of no use any more. */
export async function startGenerator(
  options: GeneratorOptions,
  onFatal: (reason: string) => void,
): Promise<GeneratorHost> {
  const module = new URL("./thread.js", import.meta.url);
  const fatal = (reason: string) => onFatal(`generator: ${reason}`);
  const thread = await openThread<IterateRequest, GeneratorFacts, Iteration>(module, options, fatal);
  return {
    facts: thread.ready,
    async iterate(add, remove, only) {
      try {
        return (await thread.ask({ add, remove, only })).answer;
      } catch (error) {
        // A request's own fault is in the iteration; past that nobody knows what the engine holds.
        fatal(error instanceof Error ? error.message : String(error));
        throw error;
      }
    },
    close: () => thread.close(),
  };
}
