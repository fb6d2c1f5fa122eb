/**
 * Runs a model before it serves, if its configuration names batch sizes. The first run of a size
 * takes longer than later runs, because ONNX Runtime lays out memory for the size.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import { withoutPaths } from "../onnx/error-text.js";
import { errorOf, madeUp, runMadeUp } from "./made-up.js";
import type { ServingModel } from "./serving.js";

/**
 * Runs one batch of each size, of requests that begin and end a sequence.
 * @param sizes rows of the batches; the model has a batch dimension
 * @returns a warning for each size that failed, because real requests may still succeed
 */
export async function warmUp(model: ServingModel, served: ServedModel, sizes: readonly number[]): Promise<string[]> {
  const warnings: string[] = [];
  for (const size of sizes) {
    const rows = Array.from({ length: size }, (_, sequence) => sequence);
    const batch = rows.map((sequence) => madeUp(served, { sequence, step: 1, last: 1, size: 1 }, undefined));
    const reason = await reasonOfFailure(model, batch);
    if (reason !== undefined) warnings.push(`the warm-up with a batch of ${size} failed: ${withoutPaths(reason)}`);
  }
  return warnings;
}

async function reasonOfFailure(
  model: ServingModel,
  batch: readonly ReturnType<typeof madeUp>[],
): Promise<string | undefined> {
  try {
    return (await runMadeUp(model, batch)).map(errorOf).find((reason) => reason !== undefined);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
