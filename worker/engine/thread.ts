/**
 * The thread of a generator's engine: it opens the model, and computes one iteration whenever the
 * main thread asks for one.
 */
import { numberDisagreement, tolerances } from "../onnx/agreement.js";
import { onCpu } from "../onnx/providers.js";
import { describe, openSession } from "../onnx/runtime.js";
import { LoadError } from "../thread/load-error.js";
import { serveThread } from "../thread/serve.js";
import { openText } from "../tokenizer/output-text.js";
import { openDecoder } from "./decoder.js";
import { Engine } from "./engine.js";
import { bytesPerPosition } from "./kv.js";
import { layoutOf, type DecoderLayout } from "./layout.js";
import type { GeneratorFacts, GeneratorOptions, IterateRequest, Iteration, EngineChange } from "./protocol.js";

await serveThread<GeneratorOptions, IterateRequest, GeneratorFacts, Iteration, EngineChange>(async (options) => {
  const session = await openSession(options);
  const layout = layoutOf({ inputs: describe(session.inputMetadata), outputs: describe(session.outputMetadata) });
  const decoder = await openDecoder(session, layout, options.vocabSize);
  await checkOnCpu(decoder.probed, layout, options);
  const engine = new Engine(decoder, { ...options, text: openText(options.tokenizerFile) });
  return {
    ready: { padding: decoder.padding, bytesPerToken: bytesPerPosition(decoder.kv) },
    hear(change) {
      if (change.kind === "add") engine.add(change.generation);
      else engine.remove(change.key);
    },
    async answer({ only }) {
      return { answer: await engine.iterate(only) };
    },
  };
});

/** @throws LoadError where the logits of a GPU are not those of the CPU */
async function checkOnCpu(probed: Float32Array, layout: DecoderLayout, options: GeneratorOptions): Promise<void> {
  if (options.placement.gpu === undefined) return;
  const session = await openSession({ ...options, placement: onCpu });
  const expected = (await openDecoder(session, layout, options.vocabSize)).probed;
  await session.release();
  const fault = numberDisagreement("logits", probed, expected, options.tolerance ?? tolerances.logits);
  if (fault !== undefined) throw new LoadError(`its answers there are not those of the CPU: ${fault}`);
}
