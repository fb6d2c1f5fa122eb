/** Loads every model version of the repositories: what is wrong with one is reported as its own, and costs the others nothing. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Announcement, ServedModel } from "#shared/contract/announcement.js";
import type { ModelConfig } from "#shared/model/config.js";
import { loadGenerator, type LoadedGenerator } from "../generator/load.js";
import { configJson } from "../repository/config-json.js";
import { LoadError } from "../repository/load-error.js";
import { resolveConfig } from "../repository/resolve.js";
import { scanRepository, type FoundModel, type ScannedModel } from "../repository/scan.js";
import type { WorkerConfig } from "../config.js";
import { startModel } from "./host.js";
import { withoutPaths } from "./reason.js";
import type { ServingModel } from "./serving.js";
import { servedOf, servingOf, unsupported } from "./serving-of.js";
import { intraOpThreads } from "./threads.js";
import type { ThreadOptions } from "./protocol.js";

interface LoadedTensorModel {
  readonly kind: "tensors";
  readonly serving: ServingModel;
  readonly served: ServedModel;
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

/** The first model's thread is started before this returns. @param onFatal a model's thread is of no use any more. */
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
      await attempt(model.name, "1", () => loadGenerator(config, model, onFatal));
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

async function loadVersion(
  settings: WorkerConfig,
  { config, facts, initialStates, warnings }: FoundModel,
  version: string,
  file: string,
  onFatal: (reason: string) => void,
): Promise<LoadedTensorModel> {
  const host = await startModel(threadOptions(settings, config, file), onFatal);
  try {
    const complete = resolveConfig(config, facts, host.graph);
    const reason = unsupported(complete);
    if (reason !== undefined) throw new LoadError(reason);
    const printed = configJson(complete);
    const digest = await digestOf(JSON.stringify(printed), file);
    return {
      kind: "tensors",
      serving: { ...servingOf(complete, initialStates), version, host },
      served: {
        ...servedOf(complete, version, digest, printed),
        ...(warnings.length > 0 && { warnings: [...warnings] }),
      },
    };
  } catch (error) {
    await host.close();
    throw error;
  }
}

const graphLevels: Readonly<Record<number, ThreadOptions["graphOptimization"]>> = {
  [-1]: "basic",
  1: "extended",
  2: "disabled",
};

/** The model's own parameters win over the worker's settings; spec/model-config.md section 4. */
function threadOptions(settings: WorkerConfig, config: ModelConfig, modelFile: string): ThreadOptions {
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
