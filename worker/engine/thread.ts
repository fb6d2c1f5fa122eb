/**
 * The thread of a generator's engine: opens the model, and computes one iteration each time the
 * main thread asks.
 */
import { describe, openSession } from "../onnx/runtime.js";
import { serveThread } from "../thread/serve.js";
import { openText } from "../tokenizer/output-text.js";
import { compareWithCpu } from "./compare.js";
import { openDecoder } from "./decoder.js";
import { Engine } from "./engine.js";
import { bytesPerPosition } from "./kv.js";
import { layoutOf } from "./layout.js";
import type { GeneratorFacts, GeneratorOptions, IterateRequest, EngineChange, TimedIteration } from "./protocol.js";

await serveThread<GeneratorOptions, IterateRequest, GeneratorFacts, TimedIteration, EngineChange>(async (options) => {
  const session = await openSession(options);
  const layout = layoutOf({ inputs: describe(session.inputMetadata), outputs: describe(session.outputMetadata) });
  const decoder = await openDecoder(session, layout, options.vocabSize);
  const warnings = await compareWithCpu(decoder.probed, layout, options);
  const engine = new Engine(decoder, { ...options, text: openText(options.tokenizerFile) });
  return {
    ready: { padding: decoder.padding, bytesPerToken: bytesPerPosition(decoder.kv), warnings },
    hear(change) {
      if (change.kind === "add") engine.add(change.generation);
      else engine.remove(change.key);
    },
    async answer({ only }) {
      const begunAt = performance.now();
      const iteration = await engine.iterate(only);
      return { answer: { ...iteration, ranMs: performance.now() - begunAt } };
    },
  };
});
