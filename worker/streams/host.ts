/** The main thread's end of the thread of a generator's engine. */
import { openThread } from "../thread/guard.js";
import type {
  GeneratorFacts,
  GeneratorOptions,
  IterateRequest,
  EngineChange,
  NewGeneration,
  TimedIteration,
} from "../engine/protocol.js";

export interface GeneratorHost {
  readonly facts: GeneratorFacts;
  /** Adds a request, which joins at the next iteration that has not begun. */
  add(generation: NewGeneration): void;
  /** Makes the engine forget a request, from the next iteration on. */
  remove(key: string): void;
  /**
   * Computes one iteration, after all iterations from earlier calls.
   * @param only key of the request to compute alone
   * @throws Error if the engine itself failed; the engine is then of no more use
   */
  iterate(only?: string): Promise<TimedIteration>;
  close(): Promise<void>;
}

/**
 * @param onFatal runs when the thread has failed for good
 * @throws Error if the model cannot load
 */
export async function startGenerator(
  options: GeneratorOptions,
  onFatal: (reason: string) => void,
): Promise<GeneratorHost> {
  const module = new URL("../engine/thread.js", import.meta.url);
  const fatal = (reason: string) => onFatal(`generator: ${reason}`);
  const thread = await openThread<IterateRequest, GeneratorFacts, TimedIteration, EngineChange>(module, options, fatal);
  return {
    facts: thread.ready,
    add: (generation) => thread.tell({ kind: "add", generation }),
    remove: (key) => thread.tell({ kind: "remove", key }),
    async iterate(only) {
      try {
        return (await thread.ask({ only })).answer;
      } catch (error) {
        // An iteration reports the fault of a single request. After any other fault, the engine's
        // state is unknown.
        fatal(error instanceof Error ? error.message : String(error));
        throw error;
      }
    },
    close: () => thread.close(),
  };
}
