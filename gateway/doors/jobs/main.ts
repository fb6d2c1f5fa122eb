/**
 * The jobs process does the work that no client waits for, and that may take days. Several
 * processes share the work. Their whole state is in Redis, so a new process replaces a dead process
 * without loss.
 */
import { randomBytes } from "node:crypto";
import { closeSync, openSync, utimesSync } from "node:fs";
import type { Queue } from "bullmq";
import type { Logger } from "pino";
import { version } from "#shared/boot.js";
import { exitCodeOf } from "#shared/exit.js";
import { Lifecycle, stopOnSignal } from "#shared/lifecycle.js";
import { openMetrics } from "#shared/http/open-metrics.js";
import { cells } from "#shared/metrics/cells.js";
import { droppedSpans } from "#shared/metrics/process.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { connectBlockingReader, connectForQueue, type RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { settingsOrExit } from "#shared/settings.js";
import type { TraceFields } from "#shared/queue/trace-settings.js";
import { openTracer } from "#shared/trace/open.js";
import type { Tracer } from "#shared/trace/span.js";
import { WaitingClients } from "../../admission/client-calls.js";
import { Audit } from "../../auth/audit.js";
import { limitsInForce, parseLimits } from "../../auth/owner/limits.js";
import { Tenants } from "../../auth/tenants.js";
import { dueJobRunner } from "../../jobs/due.js";
import { RequestReader } from "../../formats/kserve/request-reader.js";
import { TensorPrinter } from "../../formats/kserve/tensor-printer.js";
import { openParts, type Parts } from "../../service/open.js";
import { TraceRates } from "../../trace/rates.js";
import { parseRanges } from "../../webhooks/addresses.js";
import { BatchFiles } from "./batch-runs/batch-files.js";
import { BatchQueue, type BatchQueueSettings } from "./batch-queue.js";
import { LineAsker } from "./batch-runs/ask-line.js";
import { LineInference } from "./batch-runs/line-inference.js";
import { LineLimits } from "./batch-runs/line-limits.js";
import { jobsConfig, parseWaits, type JobsConfig } from "./config.js";
import { countLate } from "./counts.js";
import { Deliveries } from "./deliveries.js";
import { DueTimers } from "./due-timers.js";
import { Outbox } from "./outbox.js";
import { ScheduleRuns } from "./schedule-runs.js";
import { Sender } from "./sender.js";
import { lookAfterAll } from "./upkeep.js";

const TOUCH_EVERY_MS = 2_000;
/** Requests to the board may take this long when the process stops. */
const BOARD_GRACE_MS = 2_000;

async function serve(config: JobsConfig, log: Logger): Promise<Lifecycle> {
  const lifecycle = new Lifecycle(log);
  const name = `jobs-${randomBytes(8).toString("hex")}`;
  const audit = new Audit(name, (lines) => process.stdout.write(lines));
  lifecycle.onClose("audit", () => audit.flush());
  const metrics = await openMetrics(config, { role: "jobs", log }, lifecycle);
  const traces = await openTraces(config, name, lifecycle, log);
  const parts = await openParts({ kind: "jobs", name, config, audit, metrics, ...traces, log }, lifecycle);
  const { link, redis, deployment, fleet, jobs, schedules, webhooks, files, box } = parts;
  const { buckets, secret } = deployment;

  const allowed = parseRanges(config.BATON_WEBHOOK_ALLOW) ?? [];
  const sender = new Sender({ allowed, timeoutMs: config.BATON_WEBHOOK_TIMEOUT_MS });
  lifecycle.onClose("sender", () => sender.close());
  const connection = connectForQueue(link);
  lifecycle.onClose("queue", () => connection.disconnect());
  const kept = { ttlMs: config.BATON_DELIVERY_TTL_MS, most: config.BATON_DELIVERY_LIMIT };
  const queues: Queue[] = [];
  /** Opens a part that has a BullMQ queue. */
  const opened = async <Part extends QueuePart>(name: string, part: Part): Promise<Part> => {
    lifecycle.onClose(name, () => part.close());
    await part.whenReady();
    queues.push(part.queue);
    return part;
  };
  const deliveries = new Deliveries({
    redis,
    connection,
    webhooks,
    box,
    sender,
    waits: parseWaits(config.BATON_WEBHOOK_RETRY_MS) ?? [],
    kept,
    version,
    isTraced: traces !== undefined,
    log,
  });
  await opened("deliveries", deliveries);
  const usualLimits = parseLimits(config.BATON_DEFAULT_LIMITS);
  const tenants = new Tenants({ redis, limitsOf: (id, record) => limitsInForce(id, record, usualLimits) });
  const timers = { redis, buckets, connection, run: dueJobRunner(jobs, tenants, countLate), log };
  const due = await opened("due jobs", new DueTimers(timers));
  const scheduleRuns = await opened("schedules", new ScheduleRuns({ connection, schedules, jobs, tenants, log }));
  const outbox = new Outbox({
    redis,
    openReader: (key) => connectBlockingReader(link, { key, commands: redis }),
    buckets,
    consumer: name,
    webhooks,
    jobs,
    kept,
    secret,
    deliveries,
    timers: due,
    schedules: scheduleRuns,
    log,
  });
  await opened(
    "batches",
    await batchQueueOf(parts, {
      tenants,
      connection,
      queueLimit: config.BATON_QUEUE_LIMIT,
      tracerOf: traces?.tracerOf,
      log,
    }),
  );
  await openBoard(config, queues, audit, lifecycle, log);
  const closing = new AbortController();
  const { signal } = closing;
  const upkeep = {
    redis,
    buckets,
    name,
    served: () => new Set(fleet.directory.all().map((model) => model.name)),
    look: async (job: RequestAddress) => void (await jobs.tell(job)),
    log,
  };
  const background = Promise.all([
    outbox.run(signal),
    deliveries.lookForLeft(signal),
    due.watch(signal),
    scheduleRuns.watch(signal),
    files.tidy(signal),
    touchWhileOpen(config.BATON_HEALTH_FILE, redis, signal),
    lookAfterAll(upkeep, signal),
  ]);
  lifecycle.onClose("outbox", async () => {
    closing.abort();
    await background;
  });
  log.info({ jobs: name }, "jobs ready");
  return lifecycle;
}

/** @returns undefined without traces */
async function openTraces(config: JobsConfig, name: string, lifecycle: Lifecycle, log: Logger) {
  const tracer = await openTracer(config, {
    role: "jobs",
    process: name,
    log: (fields, line) => log.warn(fields, line),
    onDropped: droppedSpans(cells),
  });
  if (tracer === undefined) return undefined;
  lifecycle.onClose("traces", () => tracer.close());
  const rates = new TraceRates(true, config.BATON_TRACE_SAMPLE);
  return {
    onTracing: (fields: TraceFields) => rates.take(fields),
    tracerOf: (model: string) => rates.tracerOf(model, tracer),
  };
}

/** Makes the queue of batches, which leaves room for the requests of clients that wait. */
async function batchQueueOf(
  parts: Parts,
  {
    tenants,
    connection,
    queueLimit,
    tracerOf,
    log,
  }: Pick<BatchQueueSettings, "connection" | "queueLimit" | "log"> & {
    readonly tenants: Tenants;
    readonly tracerOf: ((model: string) => Tracer | undefined) | undefined;
  },
): Promise<BatchQueue> {
  const { redis, bus, fleet, batches, limits: limitsOfBodies } = parts;
  const clients = new WaitingClients();
  const limits = new LineLimits({
    takenAtOnce: (model) => fleet.takenAtOnce(model),
    clientsWait: (model) => clients.waitFor(model),
  });
  await clients.listen(bus);
  const inference = new LineInference(limits, parts.inference, parts.queue, parts.sweeper, tracerOf);
  const asker = new LineAsker({
    fleet,
    tenants,
    inference,
    reader: new RequestReader(parts.parseThread),
    printer: new TensorPrinter(parts.printThread),
    limits: limitsOfBodies,
    onBug: (err, line) => log.error({ err, line }, "a line's answer failed"),
  });
  const files = new BatchFiles(parts.files, tenants);
  return new BatchQueue({ redis, connection, batches, files, asker, inference, limits, queueLimit, log });
}

/** The members of `WorkQueue` that its users pass on. */
interface QueuePart {
  /** For Bull Board. */
  readonly queue: Queue;
  whenReady(): Promise<unknown>;
  close(): Promise<void>;
}

/** Serves the board, if the settings have a port and a token. */
async function openBoard(
  config: JobsConfig,
  queues: readonly Queue[],
  audit: Audit,
  lifecycle: Lifecycle,
  log: Logger,
): Promise<void> {
  const { BATON_JOBS_ADMIN_PORT: port, BATON_JOBS_ADMIN_HOST: host, BATON_ADMIN_TOKEN: token } = config;
  if (port === undefined || token === undefined) return;
  // Few deployments use the board, and loading it takes a third of the process's start.
  const { startBoard } = await import("./board.js");
  const board = await startBoard({ port, host, token, queues, audit, log: (fields, line) => log.error(fields, line) });
  lifecycle.onClose("board", () => board.close(BOARD_GRACE_MS));
  log.info({ host, port: board.port }, "board listening");
}

/** Touches the file while Redis answers. A fresh file also means that the process is alive. */
async function touchWhileOpen(file: string | undefined, redis: RedisClient, signal: AbortSignal): Promise<void> {
  if (file === undefined) return;
  while (!signal.aborted) {
    try {
      await redis.time();
      closeSync(openSync(file, "a"));
      utimesSync(file, new Date(), new Date());
    } catch {
      // The file becomes old, and the health check fails.
    }
    await delay(TOUCH_EVERY_MS, signal);
  }
}

async function main(): Promise<void> {
  const { config, log } = settingsOrExit("jobs", jobsConfig);
  const serving = serve(config, log);
  stopOnSignal(log, async () => (await serving).close());
  try {
    await serving;
  } catch (error) {
    log.fatal({ error: error instanceof Error ? error.message : String(error) }, "jobs cannot start");
    process.exit(exitCodeOf(error));
  }
}

void main();
