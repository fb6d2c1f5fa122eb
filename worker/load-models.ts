/**
 * Loads every model version of the repositories. A fault in one version is reported as that
 * version's own failure, and the worker serves the rest.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Announcement, ServedModel } from "#shared/contract/announcement.js";
import { loadGenerator, type GeneratorSettings, type LoadedGenerator } from "./streams/load.js";
import { configJson } from "./models/pbtxt/config-json.js";
import { LoadError } from "./thread/load-error.js";
import { resolveModel } from "./models/resolve.js";
import { readConstants } from "./models/validate/constants.js";
import { scanRepository, type FoundModel, type ScannedModel } from "./models/scan.js";
import type { WorkerConfig } from "./config.js";
import { startModel } from "./tensors/host.js";
import { compareWithCpu } from "./tensors/compare.js";
import { placementsOf, type Device, type WantedPlace } from "./devices/device.js";
import { withoutPaths } from "./onnx/error-text.js";
import { placementText, type Placement } from "./onnx/providers.js";
import { servedOf, servingOf, unsupported, type ServingModel } from "./tensors/serving.js";
import { samplesOf } from "./tensors/samples.js";
import { runSamples, warmUp } from "./tensors/warm-up.js";
import { configuredOptions } from "./onnx/session-options.js";

interface LoadedTensorModel {
  readonly kind: "tensors";
  readonly serving: ServingModel;
  readonly served: ServedModel;
  /**
   * The settings that the graph supplied for gaps in the configuration; undefined if there are none
   * of note.
   */
  readonly inferred: string | undefined;
}

export type LoadedModel = (LoadedTensorModel | LoadedGenerator) & {
  /** How long the model took to load, in ms; undefined until it has loaded. */
  readonly loadMs?: number;
};

export interface LoadReport {
  readonly loaded: readonly LoadedModel[];
  readonly failed: Announcement["failed"];
}

/** @throws Error if a repository cannot be listed */
export async function findModels(config: WorkerConfig, { gpus }: Device): Promise<readonly ScannedModel[]> {
  return (await Promise.all(config.BATON_MODEL_REPOSITORY.map((path) => scanRepository(path, gpus)))).flat();
}

/**
 * Starts the thread of each model, one model after the other. The first thread is already starting
 * when this function returns its promise.
 *
 * @param scanned every model that the repositories hold
 * @param onFatal runs when the thread of a loaded model hangs or dies
 */
export async function loadModels(
  config: WorkerConfig,
  device: Device,
  scanned: readonly ScannedModel[],
  onFatal: (reason: string) => void,
): Promise<LoadReport> {
  const wanted = scanned.filter(({ name }) => config.BATON_MODELS?.includes(name) ?? true);
  const loaded: LoadedModel[] = [];
  const failed: Announcement["failed"] = missing(config, scanned);
  const attempt = async (name: string, version: string, load: () => Promise<LoadedModel>) => {
    try {
      const since = performance.now();
      const model = await load();
      loaded.push({ ...model, loadMs: performance.now() - since });
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
      await attempt(model.name, "1", () =>
        onFirst(placementsOf(device, model.place), (placement) =>
          loadGenerator(generatorSettings(config, device, placement), model, onFatal),
        ),
      );
    } else {
      for (const version of model.versions) {
        await attempt(model.name, version.version, () => {
          if ("error" in version) throw new LoadError(version.error);
          return onFirst(placementsOf(device, wantedPlace(model)), (placement) =>
            loadVersion({ settings: config, device, placement }, model, version.version, version.file, onFatal),
          );
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

/** The place that the configuration names. Only the first instance group counts. */
function wantedPlace({ config, groups }: FoundModel): WantedPlace | undefined {
  const [group] = config.instance_group;
  return group && { ...group, needsGpu: groups[0]?.kind === "KIND_GPU" };
}

/**
 * Loads a model at the first place that can run the model. The announcement names that place, and
 * warns of the places that failed.
 *
 * @throws the error of `load` for the last place
 */
async function onFirst(
  placements: readonly [Placement, ...Placement[]],
  load: (placement: Placement) => Promise<LoadedModel>,
): Promise<LoadedModel> {
  const [first, ...others] = placements;
  const warnings: string[] = [];
  let placement = first;
  for (const next of others) {
    try {
      return placed(await load(placement), placement, warnings);
    } catch (error) {
      const reason = error instanceof Error ? withoutPaths(error.message) : String(error);
      const unlike = `it could not be loaded on ${placementText(placement)}: ${reason}`;
      warnings.push(`it runs on ${placementText(next)}, since ${unlike}`);
      placement = next;
    }
  }
  return placed(await load(placement), placement, warnings);
}

/** Adds the model's place and its warnings to the announcement. */
function placed(loaded: LoadedModel, { providers: [provider], gpu }: Placement, added: readonly string[]): LoadedModel {
  const warnings = [...(loaded.served.warnings ?? []), ...added];
  const placement = { provider, ...(gpu !== undefined && { gpu }) };
  return { ...loaded, served: { ...loaded.served, placement, ...(warnings.length > 0 && { warnings }) } };
}

function generatorSettings(config: WorkerConfig, { turns }: Device, placement: Placement): GeneratorSettings {
  return {
    placement,
    turns,
    tolerance: config.BATON_GPU_TOLERANCE,
    intraOpThreads: config.BATON_INTRA_OP_THREADS,
    slots: config.BATON_GENERATOR_SLOTS,
    kvBytes: config.BATON_KV_CACHE_BYTES,
    prefillTokens: config.BATON_PREFILL_TOKENS,
    maxIdleMs: config.BATON_CONVERSATION_IDLE_MS,
  };
}

/** A model's place, and the settings that it loads with. */
interface Loading {
  readonly settings: WorkerConfig;
  readonly device: Device;
  readonly placement: Placement;
}

async function loadVersion(
  { settings, device, placement }: Loading,
  found: FoundModel,
  version: string,
  file: string,
  onFatal: (reason: string) => void,
): Promise<LoadedTensorModel> {
  const executeDelayMs = Number(found.config.parameters["execute_delay_ms"]?.string_value ?? 0);
  const options = {
    ...configuredOptions(settings.BATON_INTRA_OP_THREADS, found.config),
    modelFile: file,
    placement,
    turns: device.turns,
    executeDelayMs,
  };
  const host = await startModel(options, onFatal);
  try {
    const { config: complete, inferred, warnings: rewritten } = resolveModel(found, host.graph);
    const constants = readConstants(complete, host.graph);
    const reason = unsupported(complete, host.graph);
    if (reason !== undefined) throw new LoadError(reason);
    const printed = configJson(complete);
    const digest = await digestOf(JSON.stringify(configJson({ ...complete, instance_group: found.groups })), file);
    const { initialStates } = found;
    const serving = { ...servingOf(complete, host.graph, { initialStates, constants }), version, host };
    const served = servedOf(complete, host.graph, version, digest, printed);
    const compared = await compareWithCpu(serving, served, options, settings.BATON_GPU_TOLERANCE, onFatal);
    await runSamples(samplesOf(serving, served, complete, found.warmUpFiles));
    const ran = await warmUp(serving, served, found.warmUp);
    const warnings = [...found.warnings, ...rewritten, ...compared, ...ran];
    return {
      kind: "tensors",
      serving,
      served: { ...served, ...(warnings.length > 0 && { warnings }) },
      inferred,
    };
  } catch (error) {
    await host.close();
    throw error;
  }
}

async function digestOf(config: string, file: string): Promise<string> {
  const hash = createHash("sha256").update(config);
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
