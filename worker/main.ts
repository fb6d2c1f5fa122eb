/**
 * The worker's life: it loads the models, joins the fleet with them, and on SIGTERM hands back its
 * steps. This file runs on the main thread of the worker process; each model computes on a thread
 * of its own.
 */
import { setFlagsFromString } from "node:v8";
import type { Logger } from "pino";
import { exitCodeOf } from "#shared/exit.js";
import { Lifecycle, stopOnSignal } from "#shared/lifecycle.js";
import { openMetrics } from "#shared/http/open-metrics.js";
import { settingsOrExit } from "#shared/settings.js";
import { workerConfig, type WorkerConfig } from "./config.js";
import { describeCard } from "./devices/card.js";
import type { Device } from "./devices/device.js";
import { findDevice } from "./devices/find.js";
import { findModels, loadModels, type LoadedModel, type LoadReport } from "./load-models.js";
import type { ScannedModel } from "./models/scan.js";
import { bereftEnsembles, chooseModels, obedience, withSteps, type ModelChoice } from "./repository/choice.js";
import { lookAt, type Looked } from "./repository/look.js";
import { lostModels } from "./repository/lost-models.js";
import { BESIDE, replacedIn, tellSupervisor, type Replaced } from "./supervision/messages.js";

/**
 * A model's results lie in memory outside V8's heap. By default V8 collects the whole heap whenever
 * heap and outside memory together have grown by a fraction of the live heap. The live heap is
 * small here, so V8 collected a dozen times a second, for nearly half of a model thread's time.
 * With this flag the two may grow to five times the live heap, in all threads.
 *
 * The worker sets the flag after loading. V8 takes compiled code of Node's own modules only under
 * the flags of the compilation, so on the command line the flag cost a start 60 ms of CPU.
 */
const HEAP_GROWTH = "--heap-growing-percent=400";

async function serve(config: WorkerConfig, log: Logger, onRetire: () => void): Promise<Lifecycle> {
  const lifecycle = new Lifecycle(log);
  const { BATON_MODEL_CONTROL: control } = config;
  const replaced = replacedIn(process.env);
  const onFatal = (reason: string): never => {
    log.fatal({ reason }, "model thread lost");
    process.exit(1);
  };
  const waitsForPort = process.env[BESIDE] !== undefined;
  const metrics = await openMetrics(config, { role: "worker", waitsForPort, log }, lifecycle);
  const wanted = { providers: config.BATON_PROVIDERS, gpu: config.BATON_GPU };
  const device = await findDevice(wanted, log, onFatal);
  // Before the models are read, so that no change is missed.
  const looked = control === "poll" ? await lookFirst(config, device) : undefined;
  const open = async () => {
    const { FleetMember } = await import("./fleet-member.js");
    return new FleetMember(config, metrics, lifecycle, log);
  };
  const early = control === "explicit" ? await open() : undefined;
  const wish = await early?.readWish();
  const chosen = chooseModels(config, wish);
  const found = await findModels(config, device, chosen);
  const choice = withSteps(chosen, found, wish);
  // The models' threads start while the main thread reads the rest of its program, and connects.
  const [report, member] = await Promise.all([loadModels(config, device, found, choice, onFatal), early ?? open()]);
  if (metrics !== undefined) await showFigures(device, lifecycle);
  const { loaded, failed } = report;
  for (const { name, version, reason } of failed) log.error({ model: name, version, reason }, "model not loaded");
  if (replaced !== undefined) await refuseLosses(replaced, { found, choice }, report, wish?.number);
  for (const model of loaded) {
    const { served } = model;
    if (model.kind === "tensors" && model.inferred !== undefined) {
      const { name, version } = served;
      log.info({ model: name, version, inferred: model.inferred }, "completed from the model's graph");
    }
    for (const warning of served.warnings ?? []) {
      log.warn(
        { model: served.name, version: served.version, warning },
        "model loaded, but its configuration is not taken as it is written",
      );
    }
  }
  lifecycle.onClose("models", async () => {
    // One after the other, because two sessions on a GPU must not close at the same time.
    for (const model of loaded) await closeModel(model);
  });
  setFlagsFromString(HEAP_GROWTH);
  const following = { replaced, obeys: obedience(wish, choice, found), onRetire, looked };
  await member.join(report, await describeCard(device.placement, process.env), following);
  return lifecycle;
}

/** Looks at the models that the worker is to load, those that steps of ensembles run included. */
async function lookFirst(config: WorkerConfig, device: Device): Promise<Looked> {
  const { BATON_MODEL_REPOSITORY: repositories, BATON_MODELS: named } = config;
  const choice = chooseModels(config, undefined);
  const found = named === undefined ? [] : await findModels(config, device, choice);
  const { isWanted } = withSteps(choice, found, undefined);
  const models = named && [...named, ...found.map(({ name }) => name).filter(isWanted)];
  return { models, files: await lookAt(repositories, models) };
}

/** Ends the process if the fleet would lose a model by it that the worker before it serves. */
async function refuseLosses(
  { models }: Replaced,
  { found, choice }: { readonly found: readonly ScannedModel[]; readonly choice: ModelChoice },
  { loaded, failed }: LoadReport,
  number: number | undefined,
): Promise<void> {
  const read = loaded.map(({ served: { name, version }, fallback }) => ({ name, version, fallback }));
  const bereft = bereftEnsembles(choice, found);
  const lost = lostModels(models, { found, loaded: read, failed, bereft });
  if (lost.length === 0) return;
  const reason = lost.map(({ name, reason: why }) => `'${name}' cannot be loaded any more: ${why}`).join("; ");
  const all = [...new Set([...failed, ...lost])];
  await tellSupervisor({ says: "refuses", reason, failed: all, ...(number !== undefined && { number }) });
  process.exit(0);
}

/** Loaded only for a worker that shows metrics. */
async function showFigures({ gpus }: Device, lifecycle: Lifecycle): Promise<void> {
  const { showCards, showHost } = await import("./devices/host-figures.js");
  await showHost();
  if (gpus.length > 0) lifecycle.onClose("nvidia-smi", showCards(process.env));
}

async function closeModel(model: LoadedModel): Promise<void> {
  if (model.kind === "ensemble") return;
  await model.serving.host.close();
  if (model.kind === "generator") return model.serving.tokenizer.close();
  for (const host of model.serving.others ?? []) await host.close();
}

async function main(): Promise<void> {
  const { config, log } = settingsOrExit("worker", workerConfig);
  // A signal that comes while models load must not be lost: the worker closes after the start.
  const serving = serve(config, log, () => leave("another process has taken the worker's place"));
  const leave = stopOnSignal(log, async () => (await serving).close());
  try {
    await serving;
  } catch (error) {
    log.fatal({ error: error instanceof Error ? error.message : String(error) }, "worker cannot start");
    process.exit(exitCodeOf(error));
  }
}

void main();
