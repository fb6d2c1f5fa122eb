/** The gateway process: opens in order, announces that it listens, and closes in reverse. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Logger } from "pino";
import { InferenceError } from "#shared/errors.js";
import { exitCodeOf } from "#shared/exit.js";
import { replySubject, type Lane } from "#shared/keys.js";
import { Lifecycle, stopOnSignal } from "#shared/lifecycle.js";
import { createLog } from "#shared/log.js";
import { connectBus } from "#shared/nats/connect.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { joinDeployment } from "#shared/redis/deployment.js";
import { checkServer } from "#shared/redis/server.js";
import { settingsOrExit } from "#shared/settings.js";
import { version } from "#shared/version.js";
import { Deadlines } from "./admission/deadlines.js";
import type { Door } from "./admission/enter.js";
import { Gatherer } from "./admission/gather.js";
import { generator } from "./admission/generate.js";
import { laterSubmitter, submitter } from "./admission/submit.js";
import { OutcomeSweeper } from "./admission/sweep.js";
import { buildApp } from "./app.js";
import { listOf } from "./browsers.js";
import { gatewayConfig, type GatewayConfig } from "./config.js";
import { describeFleet, watchFleet, type FleetWatch } from "./fleet.js";
import { directoryOf, type ModelDirectory } from "./models.js";
import { PendingRequests } from "./replies/pending.js";
import { Requests } from "./requests/requests.js";
import { startServer } from "./server.js";
import { Attendance } from "./stream/attendance.js";
import { Relay } from "./stream/relay.js";
import { WebSocketDoor } from "./stream/websocket.js";
import { Bodies } from "./v2/bodies.js";
import { ParseThread } from "./v2/parse-thread.js";
import { defaultLimits } from "./v2/limits.js";

const START_BUDGET_MS = 60_000;
/** Connections per turn of the event loop: when a gateway dies, another has all of its clients at once. */
const ACCEPTING = 8;

async function serve(config: GatewayConfig, log: Logger): Promise<Lifecycle> {
  const lifecycle = new Lifecycle(log);
  const closing = new AbortController();
  const gateway = `gw-${randomBytes(8).toString("hex")}`;
  const redis = connectRedis({ url: config.BATON_REDIS_URL, name: gateway, log });
  lifecycle.onClose("redis", () => redis.disconnect());
  await whenReady(redis, AbortSignal.timeout(START_BUDGET_MS));
  await checkServer(redis, log);
  const terms = { redis, shards: config.BATON_SHARDS, log, signal: closing.signal };
  const deployment = await joinDeployment(terms);
  const bus = connectBus({ url: config.BATON_NATS_URL, name: gateway, log });
  lifecycle.onClose("nats", () => bus.close());

  const pending = new PendingRequests(redis, bus, log);
  await bus.subscribe(replySubject(gateway), (message) => pending.receive(message));
  const sweeper = new OutcomeSweeper(redis);
  const fleet = await watchFleet(redis, log, closing.signal);
  const directory = memoizedDirectory(fleet);
  const deadlines = new Deadlines({ redis, bus, log });
  const graceMs = config.BATON_RECONNECT_GRACE_MS;
  const attendance = new Attendance({ redis, graceMs, log });
  const relay = new Relay({
    redis,
    bus,
    isStream: (lane) => isGenerator(directory(), lane),
    attendance,
    onEnd: (address) => deadlines.forget(address),
    log,
  });
  const background = Promise.all([
    pending.watch(closing.signal),
    sweeper.sweepWhileOpen(closing.signal),
    relay.watch(closing.signal),
    attendance.watch(closing.signal),
    deadlines.watch(closing.signal),
  ]);
  lifecycle.onClose("background", async () => {
    closing.abort();
    await background;
  });

  let stopping = false;
  const gatherer = new Gatherer(redis, {
    gateway,
    limits: {
      queue: config.BATON_QUEUE_LIMIT,
      waitingPerSequence: config.BATON_SEQUENCE_BACKLOG,
      liveSequences: config.BATON_SEQUENCE_LIMIT,
    },
  });
  const door: Door = {
    redis,
    gatherer,
    shards: config.BATON_SHARDS,
    secret: deployment.secret,
    idempotencyTtlMs: config.BATON_IDEMPOTENCY_TTL_MS,
  };
  const streamTtlMs = config.BATON_STREAM_TTL_MS;
  const resultTtlMs = config.BATON_RESULT_TTL_MS;
  const submission = { door, pending, sweeper, outcomeTtlMs: config.BATON_OUTCOME_TTL_MS, resultTtlMs, log };
  const requests = new Requests({ redis, bus, relay, outcomeTtlMs: streamTtlMs });
  const parseThread = new ParseThread();
  lifecycle.onClose("parse thread", () => parseThread.close());
  const app = buildApp({
    directory,
    infer: submitter(submission),
    inferLater: laterSubmitter(submission),
    generate: generator({ door, bus, relay, deadlines, streamTtlMs, resultTtlMs, graceMs, log }),
    requests,
    isReady: () => !stopping && fleet.canAdmit(),
    fleet: () => describeFleet(redis, fleet.workers(), config.BATON_SHARDS),
    serverName: config.BATON_SERVER_NAME,
    version,
    bodies: new Bodies(config.BATON_BODY_MEMORY_BYTES, parseThread),
    limits: { ...defaultLimits, jsonBytes: config.BATON_MAX_JSON_BYTES, binaryBytes: config.BATON_MAX_BODY_BYTES },
    log: (fields, line) => log.error(fields, line),
  });
  const server = await startServer(app, {
    port: config.BATON_HTTP_PORT,
    host: config.BATON_HOST,
    log: (fields, line) => log.debug(fields, line),
    webSockets: new WebSocketDoor({ requests, log: (fields, line) => log.error(fields, line) }),
    accepting: ACCEPTING,
    browsers: {
      hosts: [hostname().toLowerCase(), ...listOf(config.BATON_ALLOWED_HOSTS)],
      origins: listOf(config.BATON_ALLOWED_ORIGINS),
    },
    limits: { unreadBytes: config.BATON_MAX_UNREAD_BYTES },
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

/** Undefined where nobody serves the model any more. */
function isGenerator(directory: ModelDirectory, { model, version }: Lane): boolean | undefined {
  try {
    return directory.find(model, version).generator !== undefined;
  } catch (error) {
    if (error instanceof InferenceError) return undefined;
    throw error;
  }
}

async function main(): Promise<void> {
  const config = settingsOrExit(gatewayConfig);
  const log = createLog(config.BATON_LOG_LEVEL, "gateway");
  const serving = serve(config, log);
  stopOnSignal(log, async () => (await serving).close());
  try {
    await serving;
  } catch (error) {
    log.fatal({ error: error instanceof Error ? error.message : String(error) }, "gateway cannot start");
    process.exit(exitCodeOf(error));
  }
}

await main();
