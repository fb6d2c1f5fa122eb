/** The gateway process: opens in order, announces that it listens, and closes in reverse. */
import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import { replySubject } from "#shared/keys.js";
import { Lifecycle, stopOnSignal } from "#shared/lifecycle.js";
import { createLog } from "#shared/log.js";
import { connectBus } from "#shared/nats/connect.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { version } from "#shared/version.js";
import { checkServer } from "#shared/redis/server.js";
import { submitter } from "./admission/submit.js";
import { OutcomeSweeper } from "./admission/sweep.js";
import { buildApp } from "./app.js";
import { gatewayConfig, type GatewayConfig } from "./config.js";
import { describeFleet, watchFleet, type FleetWatch } from "./fleet.js";
import { directoryOf, type ModelDirectory } from "./models.js";
import { PendingRequests } from "./replies/pending.js";
import { startServer } from "./server.js";
import { defaultLimits } from "./v2/limits.js";

const START_BUDGET_MS = 60_000;

async function serve(config: GatewayConfig, log: Logger): Promise<Lifecycle> {
  const lifecycle = new Lifecycle(log);
  const closing = new AbortController();
  const gateway = `gw-${randomBytes(8).toString("hex")}`;
  const redis = connectRedis({ url: config.BATON_REDIS_URL, name: gateway, log });
  lifecycle.onClose("redis", () => redis.disconnect());
  await whenReady(redis, AbortSignal.timeout(START_BUDGET_MS));
  await checkServer(redis, log);
  const bus = connectBus({ url: config.BATON_NATS_URL, name: gateway, log });
  lifecycle.onClose("nats", () => bus.close());

  const pending = new PendingRequests(redis, bus, log);
  await bus.subscribe(replySubject(gateway), (message) => pending.receive(message));
  const sweeper = new OutcomeSweeper(redis);
  const background = Promise.all([pending.watch(closing.signal), sweeper.sweepWhileOpen(closing.signal)]);
  const fleet = await watchFleet(redis, log, closing.signal);
  lifecycle.onClose("background", async () => {
    closing.abort();
    await background;
  });

  let stopping = false;
  const infer = submitter({
    redis,
    pending,
    sweeper,
    gateway,
    shards: config.BATON_SHARDS,
    limits: {
      queue: config.BATON_QUEUE_LIMIT,
      waitingPerSequence: config.BATON_SEQUENCE_BACKLOG,
      liveSequences: config.BATON_SEQUENCE_LIMIT,
    },
    outcomeTtlMs: config.BATON_OUTCOME_TTL_MS,
    idempotencyTtlMs: config.BATON_IDEMPOTENCY_TTL_MS,
    log,
  });
  const app = buildApp({
    directory: memoizedDirectory(fleet),
    infer,
    isReady: () => !stopping && fleet.isReachable(),
    fleet: () => describeFleet(redis, fleet.workers(), config.BATON_SHARDS),
    version,
    limits: { ...defaultLimits, jsonBytes: config.BATON_MAX_JSON_BYTES, binaryBytes: config.BATON_MAX_BODY_BYTES },
    log: (fields, line) => log.error(fields, line),
  });
  const server = await startServer(app, {
    port: config.BATON_HTTP_PORT,
    host: config.BATON_HOST,
    log: (fields, line) => log.debug(fields, line),
  });
  lifecycle.onClose("http", () => {
    stopping = true;
    return server.close(config.BATON_DRAIN_MS, config.BATON_LINGER_MS);
  });
  log.info({ gateway, port: server.port }, "gateway listening");
  return lifecycle;
}

/** The directory changes only when the lists of workers do. */
function memoizedDirectory({ workers, lapsed }: FleetWatch): () => ModelDirectory {
  let seen = { workers: workers(), lapsed: lapsed() };
  let directory = directoryOf(seen.workers, seen.lapsed);
  return () => {
    const now = { workers: workers(), lapsed: lapsed() };
    if (now.workers !== seen.workers || now.lapsed !== seen.lapsed) {
      seen = now;
      directory = directoryOf(now.workers, now.lapsed);
    }
    return directory;
  };
}

async function main(): Promise<void> {
  let config: GatewayConfig;
  try {
    config = gatewayConfig(process.env);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(78);
  }
  const log = createLog(config.BATON_LOG_LEVEL, "gateway");
  const serving = serve(config, log);
  stopOnSignal(log, async () => (await serving).close());
  try {
    await serving;
  } catch (error) {
    log.fatal({ error: error instanceof Error ? error.message : String(error) }, "gateway cannot start");
    process.exit(1);
  }
}

await main();
