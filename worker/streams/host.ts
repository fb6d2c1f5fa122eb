/** The main thread's end of the thread of a generator's engine. */
import { openThread } from "../thread/guard.js";
import type {
  GeneratorFacts,
  GeneratorOptions,
  IterateRequest,
  Iteration,
  EngineChange,
  NewGeneration,
} from "../engine/protocol.js";

export interface GeneratorHost {
  readonly facts: GeneratorFacts;
  /** Adds a request, which joins at the next iteration that has not begun. */
  add(generation: NewGeneration): void;
  /** Makes the engine forget a request, from the next iteration on. */
  remove(key: string): void;
  /**
   * Computes one iteration; those that were asked for are computed in order.
   * @param only key of the request to compute alone
   * @throws Error when the engine itself failed; it is of no use then
   */
  iterate(only?: string): Promise<Iteration>;
  close(): Promise<void>;
}

/**
 * @param onFatal is called when the thread has failed for good
 * @throws Error when the model cannot be loaded
 */
export async function startGenerator(
  options: GeneratorOptions,
  onFatal: (reason: string) => void,
): Promise<GeneratorHost> {
  const module = new URL("../engine/thread.js", import.meta.url);
  const fatal = (reason: string) => onFatal(`generator: ${reason}`);
  const thread = await openThread<IterateRequest, GeneratorFacts, Iteration, EngineChange>(module, options, fatal);
  return {
    facts: thread.ready,
    add: (generation) => thread.tell({ kind: "add", generation }),
    remove: (key) => thread.tell({ kind: "remove", key }),
    async iterate(only) {
      try {
        return (await thread.ask({ only })).answer;
      } catch (error) {
        // The fault of one request is part of an iteration. After any other, nobody knows what the
        // engine holds.
        fatal(error instanceof Error ? error.message : String(error));
        throw error;
      }
    },
    close: () => thread.close(),
  };
}
