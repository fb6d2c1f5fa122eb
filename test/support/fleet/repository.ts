/**
 * Makes model repositories. A repository has only the models that a test uses, because a worker
 * that a test starts thirty times must not load a language model each time.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./root.js";

/** Second versions of some models, which `test/fixtures/versions/make.py` made. */
const seconds = join(root, "test/fixtures/versions");

const sources = ["infra/models", "test/fixtures/models", "test/fixtures/models-broken"];

/** @param configs the whole `config.pbtxt` of some models, instead of their own */
export function makeRepository(
  folder: string,
  models: readonly string[],
  configs: Readonly<Record<string, string>> = {},
): string {
  mkdirSync(folder, { recursive: true });
  for (const model of models) {
    cpSync(folderOf(model), join(folder, model), { recursive: true });
    const config = configs[model];
    if (config !== undefined) writeFileSync(join(folder, model, "config.pbtxt"), config);
  }
  return folder;
}

/** @returns the model's own `config.pbtxt`; undefined if the model has none, like a generator */
export function ownConfig(model: string): string | undefined {
  const file = join(folderOf(model), "config.pbtxt");
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

/** @returns the model's own `config.pbtxt` with another parameter at its end */
export function configWith(model: string, key: string, value: string): string {
  return withParameter(ownConfig(model) ?? "", key, value);
}

/** Adds a parameter to a `config.pbtxt`. */
export function withParameter(config: string, key: string, value: string): string {
  return `${config}\nparameters { key: "${key}" value { string_value: "${value}" } }\n`;
}

function folderOf(model: string): string {
  const found = sources
    .map((source) => join(root, source, model))
    .find((path) => existsSync(join(path, "config.pbtxt")) || existsSync(join(path, "config.json")));
  if (found === undefined) throw new Error(`no model ${model} in ${sources.join(", ")}`);
  return found;
}

export interface SecondRepository {
  /** The number of the second versions: "1" gives the same version with another file. */
  readonly as: "1" | "2";
  /** Whether the repository has the first versions, too. */
  readonly besideFirst?: boolean;
  readonly configs?: Readonly<Record<string, string>>;
}

/**
 * Makes a repository as after a roll-out: a model's second version, if there is any, takes the
 * place of the first or stands beside the first. Models without a second version stay as they are.
 */
export function makeSecondRepository(
  folder: string,
  models: readonly string[],
  { as, besideFirst = false, configs = {} }: SecondRepository,
): string {
  makeRepository(folder, models, configs);
  return addSecondVersions(folder, models, { as, besideFirst });
}

/** Adds the second versions to a repository that has the first. */
export function addSecondVersions(
  folder: string,
  models: readonly string[],
  { as, besideFirst = false }: Omit<SecondRepository, "configs">,
): string {
  for (const model of models) {
    const second = join(seconds, model, "2");
    if (!existsSync(second)) continue;
    if (!besideFirst) rmSync(join(folder, model, "1"), { recursive: true });
    cpSync(second, join(folder, model, as), { recursive: true });
  }
  return folder;
}
