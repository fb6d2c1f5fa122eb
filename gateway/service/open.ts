/**
 * Opens the parts that a gateway and a jobs process share: the connections, the watch on the fleet,
 * and everything that admits requests.
 */
import { setMaxListeners } from "node:events";
import type { Logger } from "pino";
import { LogLevel } from "#shared/log.js";
import type { QueueLimits } from "#shared/queue/admission/limits.js";
import { joinDeployment, type Deployment } from "#shared/queue/deployment.js";
import { replySubject } from "#shared/queue/keys.js";
import { listProcess, type ClientConnections, type ListedProcess } from "#shared/queue/processes/note-process.js";
import { ProcessReports } from "#shared/queue/processes/reports.js";
import { showBus, showRedis } from "#shared/metrics/brokers.js";
import { cells } from "#shared/metrics/cells.js";
import type { MetricsPlace } from "#shared/metrics/place.js";
import type { Lifecycle } from "#shared/lifecycle.js";
import { linkOf } from "#shared/nats/client.js";
import { connectBus, type Bus, type BusSettings } from "#shared/nats/connect.js";
import { connectRedis, whenReady, type RedisClient, type RedisSettings } from "#shared/redis/connect.js";
import { localAddress } from "#shared/redis/local-address.js";
import { checkServer } from "#shared/redis/server.js";
import { AdmissionBatcher } from "../admission/batcher.js";
import { Deadlines } from "../admission/deadlines.js";
import type { EnqueueSettings } from "../admission/enqueue.js";
import type { Inference } from "../admission/inference.js";
import { QueueLoads } from "../admission/loads.js";
import { QueuedInference } from "../admission/submit.js";
import { weightsIn } from "../auth/owner/weights.js";
import type { Audit } from "../auth/audit.js";
import { Batches } from "../batches/batches.js";
import { Files } from "../files/files.js";
import { openStore } from "../files/open-store.js";
import { GoneBack } from "../fleet/gone-back.js";
import { FleetWatch, type FleetSettings } from "../fleet/watch.js";
import { defaultLimits, type Limits } from "../formats/limits.js";
import { Jobs } from "../jobs/jobs.js";
import type { SubmissionSettings } from "../jobs/submissions.js";
import { ParseThread } from "../formats/kserve/parse-thread.js";
import { RequestReader } from "../formats/kserve/request-reader.js";
import { TensorPrinter } from "../formats/kserve/tensor-printer.js";
import { endReport } from "../outcomes/end-report.js";
import { PendingRequests } from "../outcomes/pending.js";
import { OutcomeSweeper } from "../outcomes/sweep.js";
import { Readers } from "../stream/readers.js";
import { Relay } from "../stream/relay.js";
import { captureTerms, publishesLabels } from "../subscriptions/open.js";
import { START_PATIENCE_MS, TokenStream } from "../subscriptions/token-stream.js";
import { parseRanges } from "../webhooks/addresses.js";
import { parseKey, SecretBox } from "../webhooks/secrets.js";
import { Schedules } from "../schedules/schedules.js";
import { Webhooks } from "../webhooks/webhooks.js";
import type { ServiceConfig } from "./settings.js";

/** How long the start waits for Redis, in ms. Then it fails. */
const START_BUDGET_MS = 60_000;
/**
 * Most loops that may wait for the end of the process at a time. Node warns of a leak beyond it.
 */
const LOOPS = 32;

export interface PartsOptions {
  readonly kind: ListedProcess["kind"];
  /** A name that no other process has or will have. */
  readonly name: string;
  readonly config: ServiceConfig;
  /** Of a gateway; see `JoinSettings`. */
  readonly auth?: "required" | "off" | undefined;
  readonly leave?: (() => Promise<void>) | undefined;
  readonly audit?: Audit | undefined;
  /** The place of the process's metrics; absent if it shows none. */
  readonly metrics?: MetricsPlace | undefined;
  /** Absent if the process decides about no traces; see `FleetSettings`. */
  readonly onTracing?: FleetSettings["onTracing"];
  /** Absent if the process makes no traces; see `SubmissionSettings`. */
  readonly tracerOf?: SubmissionSettings["tracerOf"];
  readonly log: Logger;
}

/** The parts that a gateway and a jobs process share. */
export interface Parts {
  /** The name of the process. */
  readonly name: string;
  readonly link: RedisSettings;
  readonly redis: RedisClient;
  /** A second connection, for large values. */
  readonly forLarge: RedisClient;
  readonly bus: Bus;
  readonly deployment: Deployment;
  readonly fleet: FleetWatch;
  /** The level of the process's log, which follows the fleet's. */
  readonly logLevel: LogLevel;
  /** What the process has counted. */
  readonly reports: ProcessReports;
  readonly loads: QueueLoads;
  readonly queue: EnqueueSettings;
  readonly queueLimits: QueueLimits;
  readonly sweeper: OutcomeSweeper;
  readonly relay: Relay;
  readonly inference: Inference;
  /** Undefined if the deployment captures no records. */
  readonly stream: TokenStream | undefined;
  readonly limits: Limits;
  /** Parses long bodies. */
  readonly parseThread: ParseThread;
  /** Prints large tensors. */
  readonly printThread: ParseThread;
  readonly jobs: Jobs;
  readonly schedules: Schedules;
  readonly webhooks: Webhooks;
  readonly files: Files;
  readonly batches: Batches;
  readonly box: SecretBox;
}

/** Opens all parts in order; `lifecycle` closes them. */
export async function openParts(options: PartsOptions, lifecycle: Lifecycle): Promise<Parts> {
  const closing = new AbortController();
  setMaxListeners(LOOPS, closing.signal);
  const links = await openLinks(options, closing.signal, lifecycle);
  const admitting = await openAdmission(options, links, closing, lifecycle);
  const parseThread = new ParseThread();
  const printThread = new ParseThread();
  lifecycle.onClose("parse threads", async () => {
    await Promise.all([parseThread.close(), printThread.close()]);
  });
  const parts = {
    name: options.name,
    ...links,
    ...admitting,
    parseThread,
    printThread,
    limits: bodyLimits(options.config),
  };
  return { ...parts, ...openNouns(options, parts, lifecycle) };
}

type Links = Pick<Parts, "link" | "redis" | "forLarge" | "bus" | "deployment"> & {
  readonly natsLink: Omit<BusSettings, "name" | "log">;
};

/** Connects to the brokers, and joins the deployment. */
async function openLinks(
  { name, config, auth, leave, log }: PartsOptions,
  signal: AbortSignal,
  lifecycle: Lifecycle,
): Promise<Links> {
  const link = { url: config.BATON_REDIS_URL, name, durability: config.BATON_DURABILITY, log };
  const redis = connectRedis(link);
  showRedis(cells, redis);
  const forLarge = connectRedis(link);
  lifecycle.onClose("redis", () => {
    redis.disconnect();
    forLarge.disconnect();
  });
  await Promise.all([redis, forLarge].map((one) => whenReady(one, AbortSignal.timeout(START_BUDGET_MS))));
  await checkServer(redis, log);
  const deployment = await joinDeployment({ redis, buckets: config.BATON_BUCKETS, auth, leave, log, signal });
  const captures = config.BATON_CAPTURE_TTL_MS > 0;
  const natsLink = { ...linkOf(config), captures };
  const bus = connectBus({ ...natsLink, name, log });
  showBus(cells, bus);
  lifecycle.onClose("nats", () => bus.close());
  return { link, redis, forLarge, bus, deployment, natsLink };
}

type Admitting = Pick<
  Parts,
  "fleet" | "logLevel" | "reports" | "loads" | "queue" | "queueLimits" | "sweeper" | "relay" | "inference" | "stream"
> & {
  readonly pending: PendingRequests;
  readonly deadlines: Deadlines;
};

/** @returns the open connections, as the metrics show them; undefined before the process listens */
function clientConnections(): ClientConnections | undefined {
  const [http, grpc] = [cells.shown("baton_http_connections"), cells.shown("baton_grpc_connections")];
  return http === undefined ? undefined : { http, ...(grpc !== undefined && { grpc }) };
}

/** Opens everything that admits requests and awaits their outcomes. */
async function openAdmission(
  { kind, name: gateway, config, audit, metrics, onTracing, log }: PartsOptions,
  { redis, forLarge, bus, deployment }: Links,
  closing: AbortController,
  lifecycle: Lifecycle,
): Promise<Admitting> {
  const { buckets, secret } = deployment;
  const { signal } = closing;
  const onForged = audit && ((reason: string) => audit.note("reply_forged", { reason }));
  const pending = new PendingRequests({ redis, bus, gateway, secret, onForged, log });
  await bus.subscribe(replySubject(gateway), (message) => pending.receive(message));
  const sweeper = new OutcomeSweeper(redis);
  const goneBack = new GoneBack(log);
  const limits = queueLimitsOf(config, kind === "jobs");
  const logLevel = new LogLevel(log);
  const onVerbosity = (verbosity: number | undefined) => logLevel.follow(verbosity);
  const onGone = () => pending.lookAtAll();
  const watched = { redis, buckets, log, onGone, goneBack, limits, onTracing, onVerbosity };
  const fleet = await FleetWatch.start(watched, signal);
  const deadlines = new Deadlines({ redis, bus, log });
  const graceMs = config.BATON_RECONNECT_GRACE_MS;
  const readers = new Readers({ redis, graceMs, log });
  const relay = new Relay({ redis, bus, models: fleet, readers, onEnd: (address) => deadlines.remove(address), log });
  const loads = new QueueLoads({ redis, limits, buckets, log });
  const terms = {
    gateway,
    limits,
    shares: loads,
    buckets,
    usageDays: config.BATON_USAGE_DAYS,
    shortScripts: config.BATON_SHORT_SCRIPTS,
  };
  const batcher = new AdmissionBatcher(redis, terms, goneBack, forLarge);
  const reports = new ProcessReports(gateway);
  reports.add(endReport);
  const stream = bus.captures ? new TokenStream({ bus, terms: captureTerms(kind, config), log }) : undefined;
  const background = Promise.all([
    batcher.confirmWhileOpen(signal),
    pending.watch(signal),
    sweeper.sweepWhileOpen(signal),
    relay.watch(signal),
    readers.watch(signal),
    deadlines.watch(signal),
    loads.watch(signal),
    listProcess(
      redis,
      { kind, name: gateway, metrics: metrics?.address(localAddress(redis)), reports, connections: clientConnections },
      signal,
    ),
    stream?.watch(signal),
  ]);
  lifecycle.onClose("background", async () => {
    closing.abort();
    await background;
  });
  await stream?.whenMade(START_PATIENCE_MS);
  const queue: EnqueueSettings = {
    redis,
    batcher,
    loads,
    limits,
    buckets,
    models: fleet,
    secret,
    idempotencyTtlMs: config.BATON_IDEMPOTENCY_TTL_MS,
    weights: weightsIn(config),
  };
  const inference = new QueuedInference({
    queue,
    pending,
    sweeper,
    bus,
    relay,
    deadlines,
    outcomeTtlMs: config.BATON_OUTCOME_TTL_MS,
    streamTtlMs: config.BATON_STREAM_TTL_MS,
    resultTtlMs: config.BATON_RESULT_TTL_MS,
    graceMs,
    log,
  });
  const watching = { fleet, logLevel, reports, loads, sweeper, relay, stream, pending, deadlines };
  return { ...watching, queue, queueLimits: limits, inference };
}

/** Opens the records of Baton's nouns. */
function openNouns(
  { kind, name, config, tracerOf, log }: PartsOptions,
  parts: Links & Admitting & Pick<Parts, "parseThread" | "printThread" | "limits">,
  lifecycle: Lifecycle,
): Pick<Parts, "jobs" | "schedules" | "webhooks" | "files" | "batches" | "box"> {
  const { redis, bus, deployment, natsLink, queue, pending, deadlines, fleet, limits } = parts;
  const { buckets, secret } = deployment;
  const webhooks = new Webhooks({ redis, buckets });
  const box = new SecretBox(config.BATON_SECRETS_KEY === undefined ? undefined : parseKey(config.BATON_SECRETS_KEY));
  const hooks = { redis, webhooks, box, allowed: parseRanges(config.BATON_WEBHOOK_ALLOW) ?? [] };
  const jobs = new Jobs({
    queue,
    pending,
    deadlines,
    bus,
    fleet,
    reader: new RequestReader(parts.parseThread),
    limits,
    printer: new TensorPrinter(parts.printThread),
    jobTtlMs: config.BATON_JOB_TTL_MS,
    resultTtlMs: config.BATON_RESULT_TTL_MS,
    publishesLabels: publishesLabels(kind, config),
    box,
    hooks,
    tracerOf,
  });
  const store = openStore({
    url: config.BATON_FILES_URL,
    nats: natsLink,
    replicas: config.BATON_FILE_REPLICAS,
    name,
    secret: secret(),
  });
  lifecycle.onClose("files", () => store.close());
  const files = new Files({ redis, store, limits: fileLimits(config), ttlMs: config.BATON_FILE_TTL_MS, log });
  return { jobs, schedules: new Schedules(redis), webhooks, files, batches: new Batches(redis, buckets), box };
}

/** @param leavesRoom whether this process leaves some of the queue to clients that wait */
function queueLimitsOf(config: ServiceConfig, leavesRoom: boolean) {
  return {
    queue: config.BATON_QUEUE_LIMIT,
    leavesRoom,
    waitingPerSequence: config.BATON_SEQUENCE_BACKLOG,
    liveSequences: config.BATON_SEQUENCE_LIMIT,
    queueBytes: config.BATON_QUEUE_BYTES,
    totalBytes: config.BATON_TOTAL_QUEUE_BYTES,
    tenantQueue: config.BATON_TENANT_QUEUE_LIMIT || undefined,
    tenantQueueBytes: config.BATON_TENANT_QUEUE_BYTES || undefined,
    laterJobs: config.BATON_DELAYED_LIMIT,
    laterBytes: config.BATON_DELAYED_BYTES,
    keptBytes: config.BATON_RESULT_BYTES,
    keptMs: config.BATON_RESULT_TTL_MS,
  };
}

function bodyLimits(config: ServiceConfig) {
  return {
    ...defaultLimits,
    jsonBytes: config.BATON_MAX_JSON_BYTES,
    binaryBytes: config.BATON_MAX_BODY_BYTES,
    stateBytes: config.BATON_MAX_STATE_BYTES,
  };
}

function fileLimits(config: ServiceConfig) {
  return {
    fileBytes: config.BATON_FILE_BYTES,
    tenantBytes: config.BATON_TENANT_FILE_BYTES,
    allBytes: config.BATON_TOTAL_FILE_BYTES,
    tenantFiles: config.BATON_TENANT_FILES,
    allFiles: config.BATON_TOTAL_FILES,
  };
}
