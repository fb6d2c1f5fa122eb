/**
 * The main thread's end of a model's thread: asks it to run, and ends the process when it hangs or dies. A thread stuck in native code cannot be
 * stopped alone, and a native crash takes the process anyway; the supervisor starts a new one.
 */
import { Worker } from "node:worker_threads";
import type { GraphMetadata, PlainTensor, RunRequest, ThreadMessage, ThreadOptions } from "./protocol.js";

export interface RunResult {
  readonly outputs: readonly PlainTensor[];
  /** Time inside the model alone. */
  readonly ranMs: number;
}

export interface ModelHost {
  readonly graph: GraphMetadata;
  /** Runs are taken in order. @throws Error with the model's own reason. */
  run(inputs: readonly PlainTensor[], outputs: readonly string[]): Promise<RunResult>;
  close(): Promise<void>;
}

/** Longest a run may take before the thread counts as hung: ten times the slowest of late, at least this. */
const WATCHDOG_MIN_MS = 30_000;
const WATCHDOG_FACTOR = 10;

/** @throws Error when the model cannot be loaded. @param onFatal the thread is of no use any more. */
export async function startModel(options: ThreadOptions, onFatal: (reason: string) => void): Promise<ModelHost> {
  const thread = new Worker(new URL("./thread.js", import.meta.url), { workerData: options });
  const runs = new Map<number, { resolve: (result: RunResult) => void; reject: (error: Error) => void }>();
  let nextId = 0;
  let closing = false;
  let slowestMs = 0;

  const graph = await new Promise<GraphMetadata>((resolve, reject) => {
    thread.on("message", (message: ThreadMessage) => {
      if (message.kind === "ready") return resolve(message.graph);
      if (message.kind === "failed") return reject(new Error(message.reason));
      const run = runs.get(message.id);
      runs.delete(message.id);
      if (message.kind === "error") return run?.reject(new Error(message.reason));
      slowestMs = Math.max(slowestMs * 0.99, message.ranMs);
      return run?.resolve(message);
    });
    thread.on("error", (error: Error) => {
      reject(error);
      if (!closing) onFatal(`model thread failed: ${error.message}`);
    });
    thread.on("exit", (code) => {
      reject(new Error(`model thread exited with ${code}`));
      if (!closing) onFatal(`model thread exited with ${code}`);
    });
  }).catch(async (error: unknown) => {
    closing = true;
    await thread.terminate();
    throw error;
  });

  return {
    graph,
    run(inputs, outputs) {
      const request: RunRequest = { id: nextId++, inputs, outputs };
      return new Promise((resolve, reject) => {
        const limitMs = Math.max(WATCHDOG_MIN_MS, slowestMs * WATCHDOG_FACTOR) * (runs.size + 1);
        const watchdog = setTimeout(() => onFatal(`model did not answer within ${Math.round(limitMs)} ms`), limitMs);
        const settle =
          <T>(done: (value: T) => void) =>
          (value: T) => {
            clearTimeout(watchdog);
            done(value);
          };
        runs.set(request.id, { resolve: settle(resolve), reject: settle(reject) });
        thread.postMessage(request, [...new Set(inputs.map(({ data }) => data.buffer))]);
      });
    },
    async close() {
      closing = true;
      await thread.terminate();
    },
  };
}
