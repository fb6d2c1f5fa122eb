/** A generator's own thread: the engine, one iteration whenever the main thread asks for one. */
import { parentPort, workerData } from "node:worker_threads";
import { describe, openSession } from "../model/runtime.js";
import { openText } from "../tokenizer/text.js";
import { openDecoder } from "./decoder.js";
import { Engine } from "./engine.js";
import { bytesPerPosition } from "./kv.js";
import { layoutOf } from "./layout.js";
import type { GeneratorMessage, GeneratorOptions, IterateRequest } from "./protocol.js";

function post(message: GeneratorMessage): void {
  parentPort?.postMessage(message, []);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function open(options: GeneratorOptions): Promise<Engine> {
  const session = await openSession(options);
  const layout = layoutOf({ inputs: describe(session.inputMetadata), outputs: describe(session.outputMetadata) });
  const decoder = await openDecoder(session, layout, options.vocabSize);
  const text = openText(options.tokenizerFile);
  post({ kind: "ready", facts: { padding: decoder.padding, bytesPerToken: bytesPerPosition(decoder.kv) } });
  return new Engine(decoder, { ...options, text });
}

async function iterate(engine: Engine, { id, add, remove, only }: IterateRequest): Promise<void> {
  try {
    for (const key of remove) engine.remove(key);
    for (const request of add) engine.add(request);
    const startedAt = performance.now();
    const iteration = await engine.iterate(only);
    post({ kind: "iteration", id, iteration: { ...iteration, ranMs: performance.now() - startedAt } });
  } catch (error) {
    post({ kind: "broken", id, reason: reasonOf(error) });
  }
}

try {
  const engine = await open(workerData as GeneratorOptions);
  parentPort?.on("message", (request: IterateRequest) => void iterate(engine, request));
} catch (error) {
  post({ kind: "failed", reason: reasonOf(error) });
}
