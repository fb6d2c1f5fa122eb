/** Loads every model of the repository: one bad model is reported and costs the others nothing. */
import { createHash } from "node:crypto";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ServedModel } from "#shared/contract/announcement.js";
import { parseTextFormat } from "../repository/text-format.js";
import { modelConfig } from "../repository/schema.js";
import type { WorkerConfig } from "../config.js";
import { startModel } from "./host.js";
import type { ServingModel } from "./serving.js";
import { servedOf, servingOf, unsupported } from "./serving-of.js";

export interface LoadedModel {
  readonly serving: ServingModel;
  readonly served: ServedModel;
}

export interface FailedModel {
  readonly name: string;
  readonly version?: string | undefined;
  readonly reason: string;
}

export async function loadModels(config: WorkerConfig, onFatal: (reason: string) => void) {
  const loaded: LoadedModel[] = [];
  const failed: FailedModel[] = [];
  for (const repo of config.BATON_MODEL_REPOSITORY) {
    for (const name of await readdir(repo)) {
      if (config.BATON_MODELS !== undefined && !config.BATON_MODELS.includes(name)) continue;
      try {
        const file = join(repo, name, "1", "model.onnx");
        const text = await readFile(join(repo, name, "config.pbtxt"));
        const parsed = parseTextFormat(modelConfig, text, "config.pbtxt");
        const reason = unsupported(parsed);
        if (reason !== undefined) throw new Error(reason);
        const host = await startModel(
          { modelFile: file, providers: config.BATON_PROVIDERS, intraOpThreads: config.BATON_INTRA_OP_THREADS, graphOptimization: "all" },
          onFatal,
        );
        const digest = createHash("sha256").update(text).update(await readFile(file)).digest("hex");
        loaded.push({
          serving: { ...servingOf(parsed, new Map()), version: "1", host },
          served: servedOf(parsed, "1", digest, { ...parsed }),
        });
      } catch (error) {
        failed.push({ name, reason: error instanceof Error ? error.message : String(error) });
      }
    }
  }
  return { loaded, failed };
}
