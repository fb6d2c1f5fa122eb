/**
 * Reads the inputs of warm-up samples from the files that the configuration names:
 * `<model>/warmup/<input_data_file>`.
 */
import type { ModelConfig } from "#shared/model/config.js";
import { LoadError } from "../thread/load-error.js";
import { readInside } from "./inside.js";

/** Most bytes of one such file. */
const MAX_FILE_BYTES = 256 << 20;

/** The content of each file, by its name in the configuration. */
export type WarmUpFiles = ReadonlyMap<string, Buffer>;

/** @param root the resolved path of the model's directory @throws LoadError */
export async function readWarmUpFiles(root: string, { model_warmup }: ModelConfig): Promise<WarmUpFiles> {
  const files = new Map<string, Buffer>();
  for (const { batch_size: size, inputs } of model_warmup) {
    // Triton skips such a sample, too.
    if (size === 0) continue;
    for (const { input_data_file: file } of Object.values(inputs)) {
      if (file === undefined || files.has(file)) continue;
      const bytes = await readInside(root, `warmup/${file}`, MAX_FILE_BYTES);
      if (bytes === undefined) throw new LoadError(`warmup input_data_file '${file}' does not exist`);
      files.set(file, bytes);
    }
  }
  return files;
}
