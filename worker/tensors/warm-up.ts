/**
 * Runs a model before it serves: the samples of its configuration's `model_warmup`, and batches of
 * the sizes that a tutorial's configuration names. The first run of a size takes longer than later
 * runs, because ONNX Runtime lays out memory for the size. No run leaves a trace in Redis or in the
 * states of sequences.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Held } from "../lane/holdings.js";
import { withoutPaths } from "../onnx/error-text.js";
import { LoadError } from "../thread/load-error.js";
import { execute } from "./execute.js";
import { errorOf, madeUp, withoutLimit } from "./made-up.js";
import type { Sample } from "./samples.js";
import type { ServingModel } from "./serving.js";

/** @throws LoadError if a sample fails, as in Triton */
export async function runSamples(samples: readonly Sample[]): Promise<void> {
  for (const { name, count, model, batch } of samples) {
    for (let run = 0; run < count; run++) {
      const reason = await reasonOfFailure(model, batch);
      if (reason !== undefined) throw new LoadError(`failed to run warmup sample '${name}': ${withoutPaths(reason)}`);
    }
  }
}

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

/** A batch that fails as a whole runs again, request by request, so a batch must run only once. */
async function reasonOfFailure(model: ServingModel, batch: readonly Held[]): Promise<string | undefined> {
  try {
    const execution = await execute(model, batch, withoutLimit);
    const reason = execution
      .settlements()
      .map(errorOf)
      .find((error) => error !== undefined);
    const alone = execution.runs > 1 ? `its ${batch.length} requests run only one by one` : undefined;
    return reason ?? alone;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
