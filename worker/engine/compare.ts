/**
 * Compares the logits of a generator on a GPU with the CPU's before the worker serves the
 * generator. Thus no client gets answers of a driver that computes wrongly.
 */
import { numberDisagreement, tolerances } from "../onnx/agreement.js";
import { withoutPaths } from "../onnx/error-text.js";
import { onCpu } from "../onnx/providers.js";
import { openSession } from "../onnx/runtime.js";
import { LoadError } from "../thread/load-error.js";
import { openDecoder } from "./decoder.js";
import type { DecoderLayout } from "./layout.js";
import type { GeneratorOptions } from "./protocol.js";

/** The options that the CPU's copy of the generator needs. */
type CompareOptions = Parameters<typeof openSession>[0] & Pick<GeneratorOptions, "vocabSize" | "tolerance">;

/**
 * @param probed the logits of the model on its own device
 * @returns a warning if only the GPU can run the model, because then there is no comparison
 * @throws LoadError if the logits of a GPU differ from the CPU's
 */
export async function compareWithCpu(
  probed: Float32Array,
  layout: DecoderLayout,
  options: CompareOptions,
): Promise<string[]> {
  if (options.placement.gpu === undefined) return [];
  let expected: Float32Array;
  try {
    expected = await probeOnCpu(layout, options);
  } catch (error) {
    const reason = withoutPaths(error instanceof Error ? error.message : String(error));
    return [`its answers were not compared with the CPU's, which cannot run the model: ${reason}`];
  }
  const fault = numberDisagreement("logits", probed, expected, options.tolerance ?? tolerances.logits);
  if (fault !== undefined) throw new LoadError(`its answers there are not those of the CPU: ${fault}`);
  return [];
}

async function probeOnCpu(layout: DecoderLayout, options: CompareOptions): Promise<Float32Array> {
  const session = await openSession({ ...options, placement: onCpu });
  try {
    return (await openDecoder(session, layout, options.vocabSize)).probed;
  } finally {
    await session.release();
  }
}
