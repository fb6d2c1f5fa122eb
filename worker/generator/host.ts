/** The main thread's end of a generator's thread. As with other models, a thread that hangs or dies ends the process, and the supervisor starts a new one. */
import { Worker } from "node:worker_threads";
import type {
  GeneratorFacts,
  GeneratorMessage,
  GeneratorOptions,
  IterateRequest,
  Iteration,
  NewGeneration,
} from "./protocol.js";

export interface GeneratorHost {
  readonly facts: GeneratorFacts;
  /** One at a time. @param only compute this request alone. @throws Error when the engine itself failed */
  iterate(add: readonly NewGeneration[], remove: readonly string[], only?: string): Promise<Iteration>;
  close(): Promise<void>;
}

/** Longest an iteration may take before the thread counts as hung: ten times the slowest of late, at least this. */
const WATCHDOG_MIN_MS = 30_000;
const WATCHDOG_FACTOR = 10;

/** @throws Error when the model cannot be loaded. @param onFatal the thread is of no use any more. */
export async function startGenerator(
  options: GeneratorOptions,
  onFatal: (reason: string) => void,
): Promise<GeneratorHost> {
  const thread = new Worker(new URL("./thread.js", import.meta.url), { workerData: options });
  let waiting: { resolve: (iteration: Iteration) => void; reject: (error: Error) => void } | undefined;
  let nextId = 0;
  let closing = false;
  let slowestMs = 0;

  const facts = await new Promise<GeneratorFacts>((resolve, reject) => {
    thread.on("message", (message: GeneratorMessage) => {
      if (message.kind === "ready") return resolve(message.facts);
      if (message.kind === "failed") return reject(new Error(message.reason));
      const asked = waiting;
      waiting = undefined;
      if (message.kind === "broken") return asked?.reject(new Error(message.reason));
      slowestMs = Math.max(slowestMs * 0.99, message.iteration.ranMs);
      return asked?.resolve(message.iteration);
    });
    thread.on("error", (error: Error) => {
      reject(error);
      if (!closing) onFatal(`generator thread failed: ${error.message}`);
    });
    thread.on("exit", (code) => {
      reject(new Error(`generator thread exited with ${code}`));
      if (!closing) onFatal(`generator thread exited with ${code}`);
    });
  }).catch(async (error: unknown) => {
    closing = true;
    await thread.terminate();
    throw error;
  });

  return {
    facts,
    iterate(add, remove, only) {
      const request: IterateRequest = { id: nextId++, add, remove, only };
      const limitMs = Math.max(WATCHDOG_MIN_MS, slowestMs * WATCHDOG_FACTOR);
      return new Promise<Iteration>((resolve, reject) => {
        const watchdog = setTimeout(
          () => onFatal(`generator did not answer within ${Math.round(limitMs)} ms`),
          limitMs,
        );
        const settle =
          <T>(done: (value: T) => void) =>
          (value: T) => {
            clearTimeout(watchdog);
            done(value);
          };
        waiting = { resolve: settle(resolve), reject: settle(reject) };
        thread.postMessage(request, []);
      });
    },
    async close() {
      closing = true;
      await thread.terminate();
    },
  };
}
