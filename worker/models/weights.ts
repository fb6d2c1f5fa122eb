/** The bytes of a model's weights, which are about the memory that they take. */
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * @returns the model's file and the files beside it whose names begin with its name, as exporters
 *   name external data: `model.onnx_data`, `model.onnx.data`
 */
export async function filesOf(modelFile: string): Promise<string[]> {
  const [folder, name] = [dirname(modelFile), basename(modelFile)];
  const files = (await readdir(folder)).filter((file) => file.startsWith(name));
  return files.sort().map((file) => join(folder, file));
}

/** @returns the bytes of all these files */
export async function weightBytes(modelFile: string): Promise<number> {
  const sizes = await Promise.all((await filesOf(modelFile)).map(async (file) => (await stat(file)).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
