/** Makes a model of a graph that a test writes down, beside the models of a repository. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { model } from "../../../infra/tutorial/onnx-file.mjs";

export interface MadeModel {
  /** Nodes, initializers, inputs and outputs (`infra/tutorial/onnx-file.mjs`). */
  readonly graph: readonly Buffer[];
  /** The `config.pbtxt` without its name and its backend. */
  readonly config: string;
  /** Further files, by their paths in the model's folder. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
}

/** @param repository a folder, which this makes if it is not there */
export function makeModels(repository: string, models: Readonly<Record<string, MadeModel>>): string {
  for (const [name, { graph, config, files = {} }] of Object.entries(models)) {
    const written = {
      "config.pbtxt": `name: "${name}"\nbackend: "onnxruntime"\n${config}\n`,
      "1/model.onnx": model(name, graph),
      ...files,
    };
    for (const [path, content] of Object.entries(written)) {
      const file = join(repository, name, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
    }
  }
  return repository;
}
