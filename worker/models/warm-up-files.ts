/**
 * Reads the inputs of warm-up samples from the files that the configuration names:
 * `<model>/warmup/<input_data_file>`.
 */
import type { ModelConfig } from "#shared/model/config.js";
import { LoadError } from "../thread/load-error.js";
import { readInside } from "./inside.js";

/** Most bytes of an input of a sample, and of a file with one. */
export const MAX_INPUT_BYTES = 256 << 20;

/** The content of each file, by its name in the configuration. */
export type WarmUpFiles = ReadonlyMap<string, Buffer>;

/**
 * To be called for one model at a time, because the files may take much memory.
 * @param directory the resolved path
 * @throws LoadError
 */
export async function readWarmUpFiles(
  directory: string,
  { model_warmup }: Pick<ModelConfig, "model_warmup">,
): Promise<WarmUpFiles> {
  const files = new Map<string, Buffer>();
  for (const { batch_size: size, inputs } of model_warmup) {
    // Triton skips such a sample, too.
    if (size === 0) continue;
    for (const { input_data_file: file } of Object.values(inputs)) {
      if (file === undefined || files.has(file)) continue;
      const bytes = await readInside(directory, `warmup/${file}`, MAX_INPUT_BYTES);
      if (bytes === undefined) throw new LoadError(`warmup input_data_file '${file}' does not exist`);
      files.set(file, bytes);
    }
  }
  return files;
}
