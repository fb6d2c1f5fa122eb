/**
 * The worker's life: load the models, join the fleet with them, and on SIGTERM hand everything
 * back.
 */
import type { Logger } from "pino";
import { exitCodeOf, UnusableError } from "#shared/exit.js";
import { Lifecycle, stopOnSignal } from "#shared/lifecycle.js";
import { createLog } from "#shared/log.js";
import { settingsOrExit } from "#shared/settings.js";
import { workerConfig, type WorkerConfig } from "./config.js";
import { findModels, loadModels, type LoadedModel } from "./model/load.js";
import type { ScannedModel } from "./repository/scan.js";

async function serve(config: WorkerConfig, log: Logger): Promise<Lifecycle> {
  const lifecycle = new Lifecycle(log);
  const onFatal = (reason: string): never => {
    log.fatal({ reason }, "model thread lost");
    process.exit(1);
  };
  const found = await findModels(config);
  refuseShardedGenerators(config, found);
  // The models' threads start while this one reads the rest of its program, and connects.
  const [report, membership] = await Promise.all([
    loadModels(config, found, onFatal),
    import("./membership.js").then(({ Membership }) => new Membership(config, lifecycle, log)),
  ]);
  const { loaded, failed } = report;
  for (const { name, version, reason } of failed) log.error({ model: name, version, reason }, "model not loaded");
  for (const { served } of loaded) {
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
  await membership.join(report);
  return lifecycle;
}

/**
 * The streams of a generator that is queued in more than one shard go unanswered: its lanes take
 * each other's records for their own. Until that is mended, whoever asks for both is told so at
 * once. @throws UnusableError
 */
function refuseShardedGenerators({ BATON_SHARDS, BATON_MODELS }: WorkerConfig, found: readonly ScannedModel[]): void {
  if (BATON_SHARDS === 1) return;
  const generators = found.filter(({ name, kind }) => kind === "generator" && (BATON_MODELS?.includes(name) ?? true));
  if (generators.length === 0) return;
  const names = generators.map(({ name }) => name).join(", ");
  throw new UnusableError(
    `BATON_SHARDS is ${BATON_SHARDS}, and generators (${names}) can only be served with BATON_SHARDS=1: ` +
      "set it to 1, or name other models in BATON_MODELS",
  );
}

async function closeModel(model: LoadedModel): Promise<void> {
  await model.serving.host.close();
  if (model.kind === "generator") await model.serving.tokenizer.close();
}

async function main(): Promise<void> {
  const config = settingsOrExit(workerConfig);
  const log = createLog(config.BATON_LOG_LEVEL, "worker");
  // A signal that comes while models still load must not be lost: it stops what has been opened by
  // then.
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
