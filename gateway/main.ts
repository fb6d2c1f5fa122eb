/**
 * The gateway process. It opens its parts in order, logs that it listens, and closes them in
 * reverse.
 */
import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { createRequire } from "node:module";
import { hostname } from "node:os";
import type { Logger } from "pino";
import { exitCodeOf } from "#shared/exit.js";
import { replySubject } from "#shared/queue/keys.js";
import { Lifecycle, stopOnSignal } from "#shared/lifecycle.js";
import { createLog } from "#shared/log.js";
import { listProcess } from "#shared/queue/note-process.js";
import { connectBus } from "#shared/nats/connect.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { joinDeployment } from "#shared/queue/deployment.js";
import { checkServer } from "#shared/redis/server.js";
import { SleepingStates } from "#shared/sleeping-states.js";
import { settingsOrExit } from "#shared/settings.js";
import { Deadlines } from "./admission/deadlines.js";
import { AdmissionBatcher } from "./admission/batcher.js";
import type { EnqueueSettings } from "./admission/enqueue.js";
import { QueueLoads } from "./admission/loads.js";
import { QueuedInference } from "./admission/submit.js";
import { OutcomeSweeper } from "./outcomes/sweep.js";
import { buildApp } from "./app.js";
import { splitList } from "./http/browsers.js";
import { parseWeights, tenantFrom } from "./http/tenant.js";
import { gatewayConfig, type GatewayConfig } from "./config.js";
import { GoneBack } from "./fleet/gone-back.js";
import { FleetWatch } from "./fleet/watch.js";
import { PendingRequests } from "./outcomes/pending.js";
import { Requests } from "./requests/requests.js";
import { Jobs } from "./job-paths/jobs.js";
import { Sequences } from "./sequences/sequences.js";
import { startServer } from "./server.js";
import { Readers } from "./stream/readers.js";
import { Relay } from "./stream/relay.js";
import { WebSocketEndpoint } from "./requests/websocket.js";
import { Bodies } from "./http/bodies.js";
import { ParseThread } from "./kserve/http/parse-thread.js";
import { TensorPrinter } from "./kserve/http/tensor-printer.js";
import { defaultLimits } from "./http/limits.js";
import { parseRanges } from "./webhooks/addresses.js";
import { parseKey, SecretBox } from "./webhooks/secrets.js";
import { Webhooks } from "./webhooks/webhooks.js";

const { version } = createRequire(import.meta.url)("#package.json") as { version: string };
/** How long Redis may take to be reachable before the start fails. */
const START_BUDGET_MS = 60_000;
/**
 * Connections that are accepted per turn of the event loop. When a gateway dies, another one has
 * all of its clients at once.
 */
const ACCEPTING = 8;
/** No more loops than these wait for the end of the process at a time; more would be a leak. */
const LOOPS = 32;

async function serve(config: GatewayConfig, log: Logger): Promise<Lifecycle> {
  const lifecycle = new Lifecycle(log);
  const closing = new AbortController();
  setMaxListeners(LOOPS, closing.signal);
  const gateway = `gw-${randomBytes(8).toString("hex")}`;
  const link = { url: config.BATON_REDIS_URL, name: gateway, durability: config.BATON_DURABILITY, log };
  const redis = connectRedis(link);
  const forLarge = connectRedis(link);
  lifecycle.onClose("redis", () => {
    redis.disconnect();
    forLarge.disconnect();
  });
  await Promise.all([redis, forLarge].map((one) => whenReady(one, AbortSignal.timeout(START_BUDGET_MS))));
  await checkServer(redis, log);
  const terms = { redis, buckets: config.BATON_BUCKETS, log, signal: closing.signal };
  const deployment = await joinDeployment(terms);
  const bus = connectBus({ url: config.BATON_NATS_URL, name: gateway, log });
  lifecycle.onClose("nats", () => bus.close());

  const pending = new PendingRequests({ redis, bus, gateway, secret: deployment.secret, log });
  await bus.subscribe(replySubject(gateway), (message) => pending.receive(message));
  const sweeper = new OutcomeSweeper(redis);
  const goneBack = new GoneBack(log);
  const limits = {
    queue: config.BATON_QUEUE_LIMIT,
    waitingPerSequence: config.BATON_SEQUENCE_BACKLOG,
    liveSequences: config.BATON_SEQUENCE_LIMIT,
    queueBytes: config.BATON_QUEUE_BYTES,
    totalBytes: config.BATON_TOTAL_QUEUE_BYTES,
    tenantQueue: config.BATON_TENANT_QUEUE_LIMIT || undefined,
    tenantQueueBytes: config.BATON_TENANT_QUEUE_BYTES || undefined,
    keptBytes: config.BATON_RESULT_BYTES,
    keptMs: config.BATON_RESULT_TTL_MS,
  };
  const { buckets } = deployment;
  const watched = { redis, buckets, log, onGone: () => pending.lookAtAll(), goneBack, limits };
  const fleet = await FleetWatch.start(watched, closing.signal);
  const deadlines = new Deadlines({ redis, bus, log });
  const graceMs = config.BATON_RECONNECT_GRACE_MS;
  const readers = new Readers({ redis, graceMs, log });
  const relay = new Relay({
    redis,
    bus,
    models: fleet,
    readers,
    onEnd: (address) => deadlines.remove(address),
    log,
  });
  const loads = new QueueLoads({ redis, limits, buckets, log });
  const batcher = new AdmissionBatcher(redis, { gateway, limits, shares: loads, buckets }, goneBack, forLarge);
  const background = Promise.all([
    batcher.confirmWhileOpen(closing.signal),
    pending.watch(closing.signal),
    sweeper.sweepWhileOpen(closing.signal),
    relay.watch(closing.signal),
    readers.watch(closing.signal),
    deadlines.watch(closing.signal),
    loads.watch(closing.signal),
    listProcess(redis, { kind: "gateway", name: gateway }, closing.signal),
  ]);
  lifecycle.onClose("background", async () => {
    closing.abort();
    await background;
  });

  let stopping = false;
  const queue: EnqueueSettings = {
    redis,
    batcher,
    loads,
    limits,
    buckets,
    models: fleet,
    secret: deployment.secret,
    idempotencyTtlMs: config.BATON_IDEMPOTENCY_TTL_MS,
    weights: config.BATON_TENANT_WEIGHTS === "" ? undefined : parseWeights(config.BATON_TENANT_WEIGHTS),
  };
  const streamTtlMs = config.BATON_STREAM_TTL_MS;
  const inference = new QueuedInference({
    queue,
    pending,
    sweeper,
    bus,
    relay,
    deadlines,
    outcomeTtlMs: config.BATON_OUTCOME_TTL_MS,
    streamTtlMs,
    resultTtlMs: config.BATON_RESULT_TTL_MS,
    graceMs,
    log,
  });
  const requests = new Requests({ redis, bus, relay, outcomeTtlMs: streamTtlMs });
  const sequences = new Sequences({
    redis,
    forLarge,
    buckets,
    models: fleet,
    limits,
    shares: loads,
    sleeping: new SleepingStates(config.BATON_HIBERNATE_DIR, deployment.secret(), log),
    idempotencyTtlMs: config.BATON_IDEMPOTENCY_TTL_MS,
  });
  const parseThread = new ParseThread();
  const printThread = new ParseThread();
  lifecycle.onClose("parse threads", async () => {
    await Promise.all([parseThread.close(), printThread.close()]);
  });
  const jobs = new Jobs({
    queue,
    pending,
    deadlines,
    bus,
    printer: new TensorPrinter(printThread),
    jobTtlMs: config.BATON_JOB_TTL_MS,
    resultTtlMs: config.BATON_RESULT_TTL_MS,
  });
  const tenantOf = tenantFrom(config.BATON_TENANT_HEADER);
  const secretsKey = config.BATON_SECRETS_KEY === undefined ? undefined : parseKey(config.BATON_SECRETS_KEY);
  const app = buildApp({
    fleet,
    tenantOf,
    inference,
    requests,
    sequences,
    jobs,
    webhooks: {
      redis,
      webhooks: new Webhooks({ redis, buckets }),
      allowed: parseRanges(config.BATON_WEBHOOK_ALLOW) ?? [],
      box: new SecretBox(secretsKey),
    },
    isReady: () => !stopping && fleet.canAdmit && !loads.isFull,
    serverName: config.BATON_SERVER_NAME,
    version,
    bodies: new Bodies(config.BATON_BODY_MEMORY_BYTES),
    parseThread,
    printThread,
    limits: {
      ...defaultLimits,
      jsonBytes: config.BATON_MAX_JSON_BYTES,
      binaryBytes: config.BATON_MAX_BODY_BYTES,
      stateBytes: config.BATON_MAX_STATE_BYTES,
    },
    log: (fields, line) => log.error(fields, line),
  });
  const server = await startServer(app, {
    port: config.BATON_HTTP_PORT,
    host: config.BATON_HOST,
    log: (fields, line) => log.debug(fields, line),
    webSockets: new WebSocketEndpoint({ requests, tenantOf, log: (fields, line) => log.error(fields, line) }),
    accepting: ACCEPTING,
    browsers: {
      hosts: [hostname().toLowerCase(), ...splitList(config.BATON_ALLOWED_HOSTS)],
      origins: splitList(config.BATON_ALLOWED_ORIGINS),
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
