/** A model repository of just the models that a test uses: a worker that respawns thirty times must not load a language model each time. */
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "./root.js";

const sources = ["infra/models", "test/models", "test/models-broken"];

export function makeRepository(folder: string, models: readonly string[]): string {
  mkdirSync(folder, { recursive: true });
  for (const model of models) {
    const from = sources
      .map((source) => join(root, source, model))
      .find((path) => existsSync(join(path, "config.pbtxt")) || existsSync(join(path, "config.json")));
    if (from === undefined) throw new Error(`no model ${model} in ${sources.join(", ")}`);
    cpSync(from, join(folder, model), { recursive: true });
  }
  return folder;
}
