/** The names of a model's classes, which answers of the classification extension have. */
import type { TensorSpec } from "#shared/contract/announcement.js";
import type { ModelConfig } from "#shared/model/config.js";
import { LoadError } from "../thread/load-error.js";
import { readText } from "./inside.js";

/**
 * Most bytes of the files of labels of a model together. Each worker announces the labels of its
 * models, and each gateway keeps the announcements of all workers.
 */
const MAX_BYTES = 65_536;

/** By the name of the output: the name of each class, a line each in the file. */
export type Labels = ReadonlyMap<string, readonly string[]>;

/** @throws LoadError if a file is missing, too large, no text, or outside the model's directory */
export async function readLabels(directory: string, config: Pick<ModelConfig, "output">): Promise<Labels> {
  const labels = new Map<string, readonly string[]>();
  let left = MAX_BYTES;
  for (const { name, label_filename: file } of config.output) {
    if (file === "") continue;
    const text = await readText(directory, file, MAX_BYTES);
    if (text === undefined) throw new LoadError(`label_filename of output '${name}': '${file}' does not exist`);
    left -= Buffer.byteLength(text);
    if (left < 0) {
      throw new LoadError(
        `label_filename of output '${name}': the labels of a model may have ${MAX_BYTES} bytes together`,
      );
    }
    labels.set(name, text.replace(/\r?\n$/, "").split(/\r?\n/));
  }
  return labels;
}

/**
 * Bounds the labels that an ensemble has from its steps.
 * @throws LoadError
 */
export function checkLabels(ensemble: string, labels: Labels): void {
  const bytes = [...labels.values()].flat().reduce((sum, name) => sum + Buffer.byteLength(name) + 1, 0);
  if (bytes <= MAX_BYTES) return;
  throw new LoadError(`the labels of ensemble '${ensemble}' may have ${MAX_BYTES} bytes together, but have ${bytes}`);
}

/** An output with the names of its classes, if it has any. */
export function labelled(output: TensorSpec, labels: Labels): TensorSpec {
  const names = labels.get(output.name);
  return names === undefined ? output : { ...output, labels: [...names] };
}
