/** The worker's life: load the models, open their lanes, tell the fleet, and on SIGTERM hand everything back. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Logger } from "pino";
import type { Announcement } from "#shared/contract/announcement.js";
import { Lifecycle, stopOnSignal } from "#shared/lifecycle.js";
import { createLog } from "#shared/log.js";
import type { Lane } from "#shared/keys.js";
import { connectBus } from "#shared/nats/connect.js";
import { RedisClock } from "#shared/redis/clock.js";
import { connectBlockingReader, connectRedis, whenReady } from "#shared/redis/connect.js";
import { Connections } from "#shared/redis/connections.js";
import { checkServer } from "#shared/redis/server.js";
import { retrying } from "#shared/retry.js";
import { settingsOrExit } from "#shared/settings.js";
import { Solitude } from "./batch/solitude.js";
import { batchWork } from "./batch/work.js";
import { workerConfig, type WorkerConfig } from "./config.js";
import { declareEstate } from "./estate.js";
import { generatorWork } from "./generator/work.js";
import { openLane, type LaneWork, type RunningLane } from "./lane.js";
import { loadModels, type LoadedModel } from "./model/load.js";
import type { LaneQueue } from "./queue/lane.js";
import { announce, announceWhileOpen } from "./registry/announce.js";

const START_BUDGET_MS = 60_000;

async function serve(config: WorkerConfig, log: Logger): Promise<Lifecycle> {
  const lifecycle = new Lifecycle(log);
  // A boot id in the name: a process that starts again under its old name must never pass as its former self.
  const worker = `${config.BATON_WORKER_NAME}.${randomBytes(6).toString("hex")}`;
  const connection = { url: config.BATON_REDIS_URL, name: worker, log };
  const redis = connectRedis(connection);
  const connections = new Connections(redis, log);
  lifecycle.onClose("redis", () => redis.disconnect());
  const bus = connectBus({ url: config.BATON_NATS_URL, name: worker, log });
  lifecycle.onClose("nats", () => bus.close());

  const { loaded, failed } = await loadModels(config, (reason) => {
    log.fatal({ reason }, "model thread lost");
    process.exit(1);
  });
  for (const { name, version, reason } of failed) log.error({ model: name, version, reason }, "model not loaded");
  lifecycle.onClose("models", async () => {
    await Promise.all(loaded.map(closeModel));
  });

  const starting = AbortSignal.timeout(START_BUDGET_MS);
  await whenReady(redis, starting);
  await checkServer(redis, log);
  const clock = new RedisClock();
  const solitude = new Solitude();
  const lanes: RunningLane[] = [];
  const laneNames: Lane[] = [];
  for (const model of loaded) {
    const { serving } = model;
    for (let shard = 0; shard < config.BATON_SHARDS; shard++) {
      const lane = { model: serving.name, version: serving.version, shard };
      // One for all tries: a lane that fails to open leaves it behind.
      const reader = connectBlockingReader(connection);
      const queue = { redis, lane, consumer: worker, streams: model.kind === "generator" };
      const open = () =>
        openLane({
          queue,
          reader,
          work: workOf(model, queue, config, solitude),
          bus,
          clock,
          connections,
          leaseMs: config.BATON_LEASE_MS,
          stateCacheBytes: config.BATON_STATE_CACHE_BYTES,
          log: log.child({ model: serving.name }),
        });
      laneNames.push(lane);
      lanes.push(await retrying(open, { budgetMs: START_BUDGET_MS }));
    }
  }
  declareEstate({
    consumer: worker,
    lanes: laneNames,
    redisUrl: config.BATON_REDIS_URL,
    logLevel: config.BATON_LOG_LEVEL,
  });
  lifecycle.onClose("lanes", async () => {
    await Promise.all(lanes.map((lane) => lane.drain()));
  });

  const announcement: Announcement = {
    worker,
    host: hostname(),
    pid: process.pid,
    startedAt: Date.now(),
    models: loaded.map(({ served }) => served),
    failed,
  };
  const announcing = new AbortController();
  const announced = announceWhileOpen(
    redis,
    announcement,
    config.BATON_LEASE_MS,
    log,
    announcing.signal,
    config.BATON_HEALTH_FILE,
  );
  lifecycle.onClose("announcement", async () => {
    announcing.abort();
    await announced;
    await announce(redis, announcement, 0);
  });
  log.info({ worker, models: loaded.map(({ served }) => `${served.name}/${served.version}`) }, "worker ready");
  return lifecycle;
}

function workOf(model: LoadedModel, queue: LaneQueue, config: WorkerConfig, solitude: Solitude): LaneWork {
  const shared = { solitude, maxRunsAlone: config.BATON_MAX_RUNS_ALONE };
  if (model.kind === "generator")
    return generatorWork(model.serving, { ...shared, queue: { ...queue, streams: true } });
  return batchWork(model.serving, { ...shared, limits: { maxStateBytes: config.BATON_MAX_STATE_BYTES } });
}

async function closeModel(model: LoadedModel): Promise<void> {
  await model.serving.host.close();
  if (model.kind === "generator") await model.serving.tokenizer.close();
}

async function main(): Promise<void> {
  const config = settingsOrExit(workerConfig);
  const log = createLog(config.BATON_LOG_LEVEL, "worker");
  // A signal that comes while models still load must not be lost: it stops what has been opened by then.
  const serving = serve(config, log);
  stopOnSignal(log, async () => (await serving).close());
  try {
    await serving;
  } catch (error) {
    log.fatal({ error: error instanceof Error ? error.message : String(error) }, "worker cannot start");
    process.exit(1);
  }
}

await main();
