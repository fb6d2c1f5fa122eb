/** The main thread's end of a generator's thread. */
import { openThread } from "../thread/guard.js";
import type {
  GeneratorFacts,
  GeneratorOptions,
  IterateRequest,
  Iteration,
  Membership,
  NewGeneration,
} from "./protocol.js";

export interface GeneratorHost {
  readonly facts: GeneratorFacts;
  /** It joins at the next iteration that has not begun. */
  add(generation: NewGeneration): void;
  /** It gets nothing from the next iteration on. */
  remove(key: string): void;
  /** @param only compute this request alone. @throws Error when the engine itself failed, which is the end of it */
  iterate(only?: string): Promise<Iteration>;
  close(): Promise<void>;
}

/** @throws Error when the model cannot be loaded. @param onFatal the thread is of no use any more. */
export async function startGenerator(
  options: GeneratorOptions,
  onFatal: (reason: string) => void,
): Promise<GeneratorHost> {
  const module = new URL("./thread.js", import.meta.url);
  const fatal = (reason: string) => onFatal(`generator: ${reason}`);
  const thread = await openThread<IterateRequest, GeneratorFacts, Iteration, Membership>(module, options, fatal);
  return {
    facts: thread.ready,
    add: (generation) => thread.tell({ kind: "add", generation }),
    remove: (key) => thread.tell({ kind: "remove", key }),
    async iterate(only) {
      try {
        return (await thread.ask({ only })).answer;
      } catch (error) {
        // A request's own fault is in the iteration; past that nobody knows what the engine holds.
        fatal(error instanceof Error ? error.message : String(error));
        throw error;
      }
    },
    close: () => thread.close(),
  };
}
