/**
 * Loads every model version of the repositories. What is wrong with one is reported as its own
 * failure, and the others are served all the same.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Announcement, ServedModel } from "#shared/contract/announcement.js";
import type { ModelConfig } from "#shared/model/config.js";
import { loadGenerator, type GeneratorSettings, type LoadedGenerator } from "./streams/load.js";
import { configJson } from "./models/pbtxt/config-json.js";
import { LoadError } from "./thread/load-error.js";
import { resolveConfig } from "./models/resolve.js";
import { readConstants } from "./models/validate/constants.js";
import { describeInferred } from "./models/validate/inferred.js";
import { scanRepository, type FoundModel, type ScannedModel } from "./models/scan.js";
import type { WorkerConfig } from "./config.js";
import { startModel } from "./tensors/host.js";
import { withoutPaths } from "./onnx/error-text.js";
import { servedOf, servingOf, unsupported, type ServingModel } from "./tensors/serving.js";
import { intraOpThreads } from "./onnx/thread-count.js";
import type { SessionOptions } from "./onnx/graph.js";

interface LoadedTensorModel {
  readonly kind: "tensors";
  readonly serving: ServingModel;
  readonly served: ServedModel;
  /** What its graph told that its configuration left out; undefined for nothing of note. */
  readonly inferred: string | undefined;
}

export type LoadedModel = LoadedTensorModel | LoadedGenerator;

export interface LoadReport {
  readonly loaded: readonly LoadedModel[];
  readonly failed: Announcement["failed"];
}

/** @throws Error when a repository cannot be listed. */
export async function findModels(config: WorkerConfig): Promise<readonly ScannedModel[]> {
  return (await Promise.all(config.BATON_MODEL_REPOSITORY.map((path) => scanRepository(path)))).flat();
}

/**
 * Starts the thread of each model, one model after the other. The first one is being started when
 * this function returns its promise.
 *
 * @param scanned every model that the repositories hold
 * @param onFatal is called when the thread of a loaded model hangs or dies
 */
export async function loadModels(
  config: WorkerConfig,
  scanned: readonly ScannedModel[],
  onFatal: (reason: string) => void,
): Promise<LoadReport> {
  const wanted = scanned.filter(({ name }) => config.BATON_MODELS?.includes(name) ?? true);
  const loaded: LoadedModel[] = [];
  const failed: Announcement["failed"] = missing(config, scanned);
  const attempt = async (name: string, version: string, load: () => Promise<LoadedModel>) => {
    try {
      loaded.push(await load());
    } catch (error) {
      failed.push({ name, version, reason: error instanceof Error ? withoutPaths(error.message) : String(error) });
    }
  };
  for (const model of wanted) {
    if (wanted.filter(({ name }) => name === model.name).length > 1) {
      failed.push({ name: model.name, reason: "the model is in more than one repository" });
    } else if (model.kind === "broken") {
      failed.push({ name: model.name, reason: model.error });
    } else if (model.kind === "generator") {
      await attempt(model.name, "1", () => loadGenerator(generatorSettings(config), model, onFatal));
    } else {
      for (const version of model.versions) {
        await attempt(model.name, version.version, () => {
          if ("error" in version) throw new LoadError(version.error);
          return loadVersion(config, model, version.version, version.file, onFatal);
        });
      }
    }
  }
  return { loaded, failed };
}

function missing({ BATON_MODELS = [] }: WorkerConfig, scanned: readonly ScannedModel[]): Announcement["failed"] {
  const names = new Set(scanned.map(({ name }) => name));
  return BATON_MODELS.filter((name) => !names.has(name)).map((name) => ({
    name,
    reason: "no repository has this model",
  }));
}

function generatorSettings(config: WorkerConfig): GeneratorSettings {
  return {
    providers: config.BATON_PROVIDERS,
    intraOpThreads: config.BATON_INTRA_OP_THREADS,
    slots: config.BATON_GENERATOR_SLOTS,
    kvBytes: config.BATON_KV_CACHE_BYTES,
    prefillTokens: config.BATON_PREFILL_TOKENS,
    maxIdleMs: config.BATON_CONVERSATION_IDLE_MS,
  };
}

async function loadVersion(
  settings: WorkerConfig,
  { config, facts, initialStates, warnings }: FoundModel,
  version: string,
  file: string,
  onFatal: (reason: string) => void,
): Promise<LoadedTensorModel> {
  const host = await startModel(sessionOptions(settings, config, file), onFatal);
  try {
    const complete = resolveConfig(config, facts, host.graph);
    const constants = readConstants(complete, host.graph);
    const reason = unsupported(complete, host.graph);
    if (reason !== undefined) throw new LoadError(reason);
    const printed = configJson(complete);
    const digest = await digestOf(JSON.stringify(printed), file);
    return {
      kind: "tensors",
      serving: { ...servingOf(complete, host.graph, { initialStates, constants }), version, host },
      served: {
        ...servedOf(complete, host.graph, version, digest, printed),
        ...(warnings.length > 0 && { warnings: [...warnings] }),
      },
      inferred: describeInferred(config, complete),
    };
  } catch (error) {
    await host.close();
    throw error;
  }
}

/**
 * ONNX Runtime's words for the values of `optimization.graph.level`; any other value means "all".
 */
const graphLevels: Readonly<Record<number, SessionOptions["graphOptimization"]>> = {
  [-1]: "basic",
  1: "extended",
  2: "disabled",
};

/**
 * The model's own configuration wins over the worker's settings, as in Triton: the parameter
 * `intra_op_thread_count`, and `optimization.graph.level`.
 */
function sessionOptions(settings: WorkerConfig, config: ModelConfig, modelFile: string): SessionOptions {
  const wanted = Number(config.parameters["intra_op_thread_count"]?.string_value ?? settings.BATON_INTRA_OP_THREADS);
  return {
    modelFile,
    providers: settings.BATON_PROVIDERS,
    intraOpThreads: intraOpThreads(wanted),
    graphOptimization: graphLevels[config.optimization?.graph?.level ?? 0] ?? "all",
  };
}

async function digestOf(config: string, file: string): Promise<string> {
  const hash = createHash("sha256").update(config);
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
