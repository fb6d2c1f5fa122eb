/** The bytes of a model's weights, which are about the memory that they take. */
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * @returns the bytes of the model's file and of the files beside it whose names begin with its
 *   name, as exporters name external data: `model.onnx_data`, `model.onnx.data`
 */
export async function weightBytes(modelFile: string): Promise<number> {
  const [folder, name] = [dirname(modelFile), basename(modelFile)];
  const files = (await readdir(folder)).filter((file) => file.startsWith(name));
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(folder, file))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
