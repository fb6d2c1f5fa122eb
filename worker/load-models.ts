/**
 * Loads every model version of the repositories. A fault in one version is reported as that
 * version's own failure, and the worker serves the rest.
 */
import type { Announcement } from "#shared/contract/announcement.js";
import { loadGenerator, type GeneratorSettings, type LoadedGenerator } from "./streams/load.js";
import { figuresOf, type ModelFigures } from "./models/validate/figures.js";
import { weightBytes } from "./models/weights.js";
import { scanRepository, type FoundModel, type ScannedModel } from "./models/scan.js";
import { loadVersion, type LoadedTensorModel } from "./load-version.js";
import type { WorkerConfig } from "./config.js";
import { inOrder, loadEnsemble, type LoadedEnsemble } from "./ensembles/load.js";
import { callableGenerator, type Callable } from "./ensembles/serving.js";
import type { ModelChoice } from "./repository/choice.js";
import { instancePlaces, type Device, type Places, type WantedInstances } from "./devices/device.js";
import { withoutPaths } from "./onnx/error-text.js";
import { placementText, type Placement } from "./onnx/providers.js";

export type LoadedModel = (LoadedTensorModel | LoadedEnsemble | (LoadedGenerator & { readonly callable: Callable })) & {
  /** How long the model took to load, in ms; undefined until it has loaded. */
  readonly loadMs?: number;
  /** What the configuration says of the model's figures; undefined until it has loaded. */
  readonly figures?: ModelFigures;
  /** Whether an instance runs on a GPU. */
  readonly isOnGpu?: boolean;
  /** Why the model does not run at its preferred places; absent if it does. */
  readonly fallback?: string;
};

export interface LoadReport {
  readonly loaded: readonly LoadedModel[];
  readonly failed: Announcement["failed"];
}

/**
 * @param choice of the models to load, and their configurations
 * @throws Error if a repository cannot be listed
 */
export async function findModels(
  config: WorkerConfig,
  { gpus }: Device,
  { configs }: ModelChoice,
): Promise<readonly ScannedModel[]> {
  const paths = config.BATON_MODEL_REPOSITORY;
  return (await Promise.all(paths.map((path) => scanRepository(path, gpus, configs)))).flat();
}

/**
 * Starts the thread of each model, one model after the other. The first thread is already starting
 * when this function returns its promise.
 *
 * @param scanned every model that the repositories hold
 * @param choice of the models to load
 * @param onFatal runs when the thread of a loaded model hangs or dies
 */
export async function loadModels(
  config: WorkerConfig,
  device: Device,
  scanned: readonly ScannedModel[],
  { isWanted, named }: ModelChoice,
  onFatal: (reason: string) => void,
): Promise<LoadReport> {
  const wanted = scanned.filter(({ name }) => isWanted(name));
  const loaded: LoadedModel[] = [];
  const failed: Announcement["failed"] = missing(named, scanned);
  const attempt = async (
    { name, figures }: { readonly name: string; readonly figures: ModelFigures },
    version: string,
    file: string | undefined,
    load: () => Promise<LoadedModel>,
  ) => {
    try {
      const since = performance.now();
      // First, because nothing closes a loaded model if a later line fails.
      const bytes = file === undefined ? 0 : await weightBytes(file);
      const model = await load();
      const loadMs = performance.now() - since;
      loaded.push({ ...model, served: { ...model.served, weightBytes: bytes * sessionsOf(model) }, figures, loadMs });
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
      await attempt(model, "1", model.modelFile, () =>
        onFirst(
          instancePlaces(device, model.place === undefined ? [] : [{ ...model.place, ...single }]),
          async ([place]) => {
            const generator = await loadGenerator(generatorSettings(config, device, place), model, onFatal);
            const files = [model.modelFile, model.tokenizerFile];
            return { ...generator, callable: callableGenerator(generator.served, files) };
          },
        ),
      );
    } else if (model.kind === "found") {
      for (const version of model.versions) {
        if ("error" in version) {
          failed.push({ name: model.name, version: version.version, reason: version.error });
          continue;
        }
        const named = { name: model.name, figures: figuresOf(model.config) };
        await attempt(named, version.version, version.file, () =>
          onFirst(instancePlaces(device, wantedInstances(model)), (places) =>
            loadVersion({ settings: config, device, places }, model, version, onFatal),
          ),
        );
      }
    }
  }
  const unique = wanted.filter(({ name }) => wanted.filter((one) => one.name === name).length === 1);
  for (const model of inOrder(unique.flatMap((one) => (one.kind === "ensemble" ? [one] : [])))) {
    const { name, config: own, versions } = model;
    for (const version of versions) {
      await attempt({ name, figures: figuresOf(own) }, version, undefined, () =>
        loadEnsemble(
          model,
          version,
          loaded.map(({ callable }) => callable),
        ),
      );
    }
  }
  return { loaded, failed };
}

function missing(named: readonly string[], scanned: readonly ScannedModel[]): Announcement["failed"] {
  const names = new Set(scanned.map(({ name }) => name));
  return named.filter((name) => !names.has(name)).map((name) => ({ name, reason: "no repository has this model" }));
}

/** How many sessions hold the model's weights, and so how many batches run side by side. */
export function sessionsOf(model: LoadedModel): number {
  return model.kind === "tensors" ? 1 + (model.serving.others?.length ?? 0) : 1;
}

/** A generator has one instance in a worker. */
const single = { count: 1, named: [] } as const;

/** The instances that the configuration asks for. */
function wantedInstances({ config, groups }: FoundModel): WantedInstances[] {
  return config.instance_group.map(({ kind, gpus, count }, index) => {
    const own = groups[index];
    return { kind, gpus, count, named: own?.gpus ?? [], needsGpu: own?.kind === "KIND_GPU" };
  });
}

/**
 * Loads a model at the first places that can run the model. The announcement names them, and warns
 * of the places that failed.
 *
 * @throws the error of `load` for the last places
 */
async function onFirst(
  alternatives: readonly [Places, ...Places[]],
  load: (places: Places) => Promise<LoadedModel>,
): Promise<LoadedModel> {
  const [first, ...others] = alternatives;
  const fallbacks: string[] = [];
  let places = first;
  for (const next of others) {
    try {
      return placed(await load(places), places, fallbacks);
    } catch (error) {
      const reason = error instanceof Error ? withoutPaths(error.message) : String(error);
      fallbacks.push(`it could not be loaded on ${placesText(places)}: ${reason}`);
      places = next;
    }
  }
  return placed(await load(places), places, fallbacks);
}

function placesText(places: Places): string {
  return [...new Set(places.map(placementText))].join(" and ");
}

/** Adds the place of the model's first instance and its warnings to the announcement. */
function placed(loaded: LoadedModel, places: Places, fallbacks: readonly string[]): LoadedModel {
  const [
    {
      providers: [provider],
      gpu,
    },
  ] = places;
  const added = fallbacks.map((why) => `it runs on ${placesText(places)}, since ${why}`);
  const warnings = [...(loaded.served.warnings ?? []), ...added];
  const placement = { provider, ...(gpu !== undefined && { gpu }) };
  const served = { ...loaded.served, placement, ...(warnings.length > 0 && { warnings }) };
  const isOnGpu = places.some((place) => place.gpu !== undefined);
  return { ...loaded, served, isOnGpu, ...(fallbacks.length > 0 && { fallback: fallbacks.join("; ") }) };
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
