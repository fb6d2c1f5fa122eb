/** The names of a model's classes, which answers of the classification extension have. */
import type { ModelConfig } from "#shared/model/config.js";
import { LoadError } from "../thread/load-error.js";
import { readText } from "./inside.js";

/** Most bytes of a file of labels. Every gateway keeps the labels of every model. */
const MAX_BYTES = 1024 * 1024;

/** By the name of the output: the name of each class, a line each in the file. */
export type Labels = ReadonlyMap<string, readonly string[]>;

/** @throws LoadError if a file is missing, too large, no text, or outside the model's directory */
export async function readLabels(directory: string, config: Pick<ModelConfig, "output">): Promise<Labels> {
  const labels = new Map<string, readonly string[]>();
  for (const { name, label_filename: file } of config.output) {
    if (file === "") continue;
    const text = await readText(directory, file, MAX_BYTES);
    if (text === undefined) throw new LoadError(`label_filename of output '${name}': '${file}' does not exist`);
    labels.set(name, text.replace(/\r?\n$/, "").split(/\r?\n/));
  }
  return labels;
}
