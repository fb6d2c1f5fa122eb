/**
 * Reads a model repository: its models and versions, and the configuration of each model. A fault
 * of one model is the result for that model. Only a repository that cannot be listed is an error.
 */
import { readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import type { ModelConfig, VersionPolicy } from "#shared/model/config.js";
import { completeDefaults, groupsOfDigest, type DirectoryFacts } from "./validate/complete.js";
import { generatorConfig, type GeneratorConfig } from "./generator-config.js";
import { looksLikeGenerator, readGeneratorFolder, type GeneratorFolder } from "./generator-folder.js";
import { readInitialStates, type InitialStates } from "./initial-state.js";
import { checkTree, readInside, resolveInside } from "./inside.js";
import { readLabels, type Labels } from "./labels.js";
import { isEnsemble } from "./validate/ensemble.js";
import { judge } from "./validate/judge.js";
import { LoadError } from "../thread/load-error.js";
import { parseConfigJson } from "./pbtxt/parse-config-json.js";
import { modelConfig } from "./pbtxt/schema.js";
import { defaultMessage, MAX_CONFIG_BYTES } from "./pbtxt/text-format.js";
import { genuine, readConfigText, rewriteValues, type ReadConfig } from "./validate/tutorial.js";
import { validateTensors } from "./validate/tensors.js";
import { validateConfig } from "./validate/validate.js";

const CONFIG = "config.pbtxt";

/** A version with a missing or refused file does not affect the other versions. */
type ScannedVersion = GoodVersion | { readonly version: string; readonly error: string };

export interface GoodVersion {
  readonly version: string;
  /** The resolved path of the model. */
  readonly file: string;
  /** The paths of the models of `cc_model_filenames` that are there, by compute capability. */
  readonly cardFiles: ReadonlyMap<string, string>;
}

/** A tensor model: config.pbtxt and numbered versions. */
export interface FoundModel {
  readonly kind: "found";
  readonly name: string;
  /** The resolved path. */
  readonly directory: string;
  /**
   * Completed by `completeDefaults`; `resolveConfig` finishes the configuration once the graph is
   * known.
   */
  readonly config: ModelConfig;
  readonly facts: DirectoryFacts;
  /** The instance groups for the digest: see `groupsOfDigest`. */
  readonly groups: ModelConfig["instance_group"];
  /** Chosen by the version policy, ascending; at least one. */
  readonly versions: readonly ScannedVersion[];
  readonly initialStates: InitialStates;
  /** The states with one name for both of their tensors (`validate/state-names.ts`). */
  readonly stateNames: ReadonlySet<string>;
  /** Batch sizes to run before the worker serves the model. */
  readonly warmUp: readonly number[];
  readonly labels: Labels;
  /**
   * A sentence for each deviation from the written configuration: fields read as others, fields
   * without effect that change no answer, and strings that a state's file lacks.
   */
  readonly warnings: readonly string[];
}

/** A generator: a Hugging Face folder, perhaps with a config.pbtxt. Its only version is "1". */
export interface FoundGenerator extends GeneratorFolder, GeneratorConfig {
  readonly kind: "generator";
}

/** An ensemble, which has no files of its own: its steps run models of the same worker. */
export interface FoundEnsemble {
  readonly kind: "ensemble";
  readonly name: string;
  readonly config: ModelConfig;
  /** Chosen by the version policy, ascending; at least one. */
  readonly versions: readonly string[];
  readonly labels: Labels;
  /** As in `FoundModel`. */
  readonly warnings: readonly string[];
}

/** A directory that cannot be served; `error` says why. */
interface BrokenModel {
  readonly kind: "broken";
  readonly name: string;
  readonly directory: string;
  readonly error: string;
}

export type ScannedModel = FoundModel | FoundGenerator | FoundEnsemble | BrokenModel;

/**
 * @param gpus ids of the GPUs that this worker offers; none by default
 * @param configs configurations as JSON, by the name of the model whose config.pbtxt each replaces
 * @returns the result for each model directory, sorted by name. Names that begin with a dot are not
 *   models: `.git`, or `..data` in a Kubernetes volume.
 */
export async function scanRepository(
  repository: string,
  gpus: readonly number[] = [],
  configs: ReadonlyMap<string, string> = new Map(),
): Promise<ScannedModel[]> {
  const root = await realpath(repository);
  const entries = await readdir(root, { withFileTypes: true });
  const models: ScannedModel[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const { name } = entry;
    if (name.startsWith(".") || !(entry.isDirectory() || entry.isSymbolicLink())) continue;
    const directory = join(root, name);
    try {
      const model = await scanModel(root, name, gpus, configs.get(name));
      if (model !== undefined) models.push(model);
    } catch (error) {
      models.push({ kind: "broken", name, directory, error: textOf(error) });
    }
  }
  return models;
}

/** Model names become parts of paths, Redis keys and NATS subjects. */
export function isModelName(name: string): boolean {
  return /^[A-Za-z0-9._-]{1,128}$/.test(name) && !name.includes("..") && name !== ".";
}

/**
 * @returns undefined for a link to a file
 * @throws LoadError or a system error if the model is broken
 */
async function scanModel(
  root: string,
  name: string,
  gpus: readonly number[],
  given: string | undefined,
): Promise<FoundModel | FoundGenerator | FoundEnsemble | undefined> {
  if (!isModelName(name)) {
    throw new LoadError("a model's name is 1 to 128 letters, digits, '.', '_' or '-', without '..'");
  }
  const directory = await realpath(join(root, name));
  if (!directory.startsWith(root + sep)) throw new LoadError(`model directory '${name}' leads out of the repository`);
  const entries = await readdir(directory, { withFileTypes: true }).catch((cause: unknown) => {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOTDIR") return undefined;
    throw cause;
  });
  if (entries === undefined) return undefined;
  const folders = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink());
  const available = versionNumbers(folders.map((entry) => entry.name));
  const names = entries.map((entry) => entry.name);
  if (available.length === 0 && looksLikeGenerator(names)) {
    const facts = { directory: name, firstVersionFiles: undefined, gpus };
    const config = generatorConfig(rewriteValues(await readConfig(directory, given), facts), name, gpus);
    return { kind: "generator", ...(await readGeneratorFolder(directory, name)), ...config };
  }
  const facts: DirectoryFacts = {
    directory: name,
    firstVersionFiles: await filesOfFirst(directory, available),
    gpus,
  };
  const { config: written, stateNames, warmUp, warnings } = rewriteValues(await readConfig(directory, given), facts);
  const config = completeDefaults(written, facts);
  if (config.name !== name) {
    const rule = "directory name must equal model name";
    throw new LoadError(`unexpected directory name '${name}' for model '${config.name}', ${rule}`);
  }
  // An ensemble has no files, and an empty folder for its version gets lost in a repository of git.
  const there = isEnsemble(config) && available.length === 0 ? ["1"] : available;
  const chosen = chooseVersions(config.version_policy, there);
  if (chosen.length === 0) {
    throw new LoadError(`at least one version must be available under the version policy of model '${name}'`);
  }
  validateConfig(config, gpus);
  const unheard = judge(written);
  const labels = await readLabels(directory, config);
  if (isEnsemble(config)) {
    validateTensors(config);
    return { kind: "ensemble", name, config, versions: chosen, labels, warnings: [...warnings, ...unheard] };
  }
  const { initialStates, warnings: lacking } = await readInitialStates(directory, config);
  const versions: ScannedVersion[] = [];
  for (const version of chosen) versions.push(await scanVersion(directory, version, config));
  return {
    kind: "found",
    name,
    directory,
    config,
    facts,
    groups: groupsOfDigest(written, facts),
    versions,
    initialStates,
    stateNames,
    warmUp,
    labels,
    warnings: [...warnings, ...unheard, ...lacking],
  };
}

/**
 * A missing config.pbtxt counts as an empty one, which is enough for an ONNX model.
 * @param given a configuration as JSON in place of the file
 */
async function readConfig(directory: string, given: string | undefined): Promise<ReadConfig> {
  if (given !== undefined) return genuine(parseConfigJson(given));
  const source = await readInside(directory, CONFIG, MAX_CONFIG_BYTES);
  return source === undefined ? genuine(defaultMessage(modelConfig)) : readConfigText(source, CONFIG);
}

/**
 * @returns the names in the first version directory, in string order as in Triton; undefined if
 *   there is no such directory
 */
async function filesOfFirst(directory: string, available: readonly string[]): Promise<readonly string[] | undefined> {
  const [first] = [...available].sort();
  if (first === undefined) return undefined;
  const folder = await resolveInside(directory, first);
  return folder?.directory === true ? readdir(folder.path) : undefined;
}

async function scanVersion(
  directory: string,
  version: string,
  { default_model_filename: filename, cc_model_filenames: ofCards }: ModelConfig,
): Promise<ScannedVersion> {
  try {
    const file = await modelFile(directory, version, filename);
    if (file === undefined) throw new LoadError(`'${join(version, filename)}' does not exist`);
    const cardFiles = new Map<string, string>();
    for (const [capability, name] of Object.entries(ofCards)) {
      const own = await modelFile(directory, version, name);
      if (own !== undefined) cardFiles.set(capability, own);
    }
    await checkTree(directory, version);
    return { version, file, cardFiles };
  } catch (error) {
    return { version, error: textOf(error) };
  }
}

/**
 * A model is a file, or a directory of that name with model.onnx and its external data.
 * @returns the resolved path; undefined if there is no such file
 */
async function modelFile(directory: string, version: string, filename: string): Promise<string | undefined> {
  const named = await resolveInside(directory, join(version, filename));
  const inner = join(version, filename, "model.onnx");
  const found = named?.directory === true ? await resolveInside(directory, inner) : named;
  return found === undefined || found.directory ? undefined : found.path;
}

/**
 * Shows only Baton's own texts, because the text of a system error contains paths of this machine.
 */
function textOf(error: unknown): string {
  if (error instanceof LoadError) return error.message;
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
  return code === undefined
    ? "the model directory could not be read"
    : `the model directory could not be read (${code})`;
}

/** Triton stores versions as int64, so this is the largest. */
const MAX_VERSION = 2n ** 63n - 1n;

/** @returns the names that are version numbers, ascending; `01` and `latest` are not */
export function versionNumbers(names: readonly string[]): string[] {
  return names
    .filter((name) => /^(?:0|[1-9]\d{0,18})$/.test(name) && BigInt(name) <= MAX_VERSION)
    .sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
}

/**
 * Applies a version policy. Without a policy all versions count.
 * @param available version numbers, ascending
 * @returns the chosen versions, ascending
 */
export function chooseVersions(policy: VersionPolicy | undefined, available: readonly string[]): readonly string[] {
  if (policy?.specific !== undefined) {
    const wanted = new Set(policy.specific.versions.map(String));
    return available.filter((version) => wanted.has(version));
  }
  if (policy?.latest === undefined) return available;
  return policy.latest.num_versions === 0 ? [] : available.slice(-policy.latest.num_versions);
}
