/**
 * The worker's life: it loads the models, joins the fleet with them, and on SIGTERM hands back what
 * it holds. This is the main thread of the worker process; models compute on threads of their own.
 */
import type { Logger } from "pino";
import { exitCodeOf } from "#shared/exit.js";
import { Lifecycle, stopOnSignal } from "#shared/lifecycle.js";
import { createLog } from "#shared/log.js";
import { settingsOrExit } from "#shared/settings.js";
import { workerConfig, type WorkerConfig } from "./config.js";
import { findModels, loadModels, type LoadedModel } from "./load-models.js";

async function serve(config: WorkerConfig, log: Logger): Promise<Lifecycle> {
  const lifecycle = new Lifecycle(log);
  const onFatal = (reason: string): never => {
    log.fatal({ reason }, "model thread lost");
    process.exit(1);
  };
  const found = await findModels(config);
  // The models' threads start while this one reads the rest of its program, and connects.
  const [report, member] = await Promise.all([
    loadModels(config, found, onFatal),
    import("./fleet-member.js").then(({ FleetMember }) => new FleetMember(config, lifecycle, log)),
  ]);
  const { loaded, failed } = report;
  for (const { name, version, reason } of failed) log.error({ model: name, version, reason }, "model not loaded");
  for (const model of loaded) {
    const { served } = model;
    if (model.kind === "tensors" && model.inferred !== undefined) {
      const { name, version } = served;
      log.info({ model: name, version, inferred: model.inferred }, "completed from the model's graph");
    }
    for (const warning of served.warnings ?? []) {
      log.warn(
        { model: served.name, version: served.version, warning },
        "model loaded, but not all that its configuration asks for is done",
      );
    }
  }
  lifecycle.onClose("models", async () => {
    await Promise.all(loaded.map(closeModel));
  });
  await member.join(report);
  return lifecycle;
}

async function closeModel(model: LoadedModel): Promise<void> {
  await model.serving.host.close();
  if (model.kind === "generator") await model.serving.tokenizer.close();
}

async function main(): Promise<void> {
  const config = settingsOrExit(workerConfig);
  const log = createLog(config.BATON_LOG_LEVEL, "worker");
  // A signal that comes while models still load must not be lost: it closes what has been opened.
  const serving = serve(config, log);
  stopOnSignal(log, async () => (await serving).close());
  try {
    await serving;
  } catch (error) {
    log.fatal({ error: error instanceof Error ? error.message : String(error) }, "worker cannot start");
    process.exit(exitCodeOf(error));
  }
}

await main();
