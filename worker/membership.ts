/** A worker's place in the fleet: its connections, the lanes of its models, and what it announces. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Logger } from "pino";
import type { Announcement } from "#shared/contract/announcement.js";
import type { Lane } from "#shared/keys.js";
import type { Lifecycle } from "#shared/lifecycle.js";
import { connectBus, type Bus } from "#shared/nats/connect.js";
import { RedisClock } from "#shared/redis/clock.js";
import { connectBlockingReader, connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { Connections } from "#shared/redis/connections.js";
import { joinDeployment } from "#shared/redis/deployment.js";
import { checkServer } from "#shared/redis/server.js";
import { retrying } from "#shared/retry.js";
import { Solitude } from "./batch/solitude.js";
import { batchWork } from "./batch/work.js";
import type { WorkerConfig } from "./config.js";
import { declareEstate } from "./estate.js";
import { generatorWork } from "./generator/work.js";
import { openLane, type LaneWork, type RunningLane } from "./lane.js";
import type { LoadedModel, LoadReport } from "./model/load.js";
import type { LaneQueue } from "./queue/lane.js";
import { announce, announceWhileOpen } from "./registry/announce.js";

const START_BUDGET_MS = 60_000;

export class Membership {
  /** A boot id in the name: a process that starts again under its old name must never pass as its former self. */
  private readonly worker: string;
  private readonly config: WorkerConfig;
  private readonly lifecycle: Lifecycle;
  private readonly log: Logger;
  private readonly redis: RedisClient;
  private readonly connections: Connections;
  private readonly bus: Bus;
  private readonly solitude = new Solitude();
  private readonly clock = new RedisClock();

  /** Begins to connect, and waits for nothing. */
  constructor(config: WorkerConfig, lifecycle: Lifecycle, log: Logger) {
    this.worker = `${config.BATON_WORKER_NAME}.${randomBytes(6).toString("hex")}`;
    this.config = config;
    this.lifecycle = lifecycle;
    this.log = log;
    this.redis = connectRedis({ url: config.BATON_REDIS_URL, name: this.worker, log });
    this.connections = new Connections(this.redis, log);
    lifecycle.onClose("redis", () => this.redis.disconnect());
    this.bus = connectBus({ url: config.BATON_NATS_URL, name: this.worker, log });
    lifecycle.onClose("nats", () => this.bus.close());
  }

  /** Resolves once the lanes are open and the fleet is being told. @throws Error when Redis cannot be used */
  async join({ loaded, failed }: LoadReport): Promise<void> {
    const { worker, config, log } = this;
    await whenReady(this.redis, AbortSignal.timeout(START_BUDGET_MS));
    await checkServer(this.redis, log);
    const leaving = new AbortController();
    this.lifecycle.onClose("deployment", () => leaving.abort());
    await joinDeployment({ redis: this.redis, shards: config.BATON_SHARDS, log, signal: leaving.signal });
    await this.openLanes(loaded);
    const models = loaded.map(({ served }) => served);
    this.announce({ worker, host: hostname(), pid: process.pid, startedAt: Date.now(), models, failed }, config);
    log.info({ worker, models: models.map(({ name, version }) => `${name}/${version}`) }, "worker ready");
  }

  private async openLanes(loaded: readonly LoadedModel[]): Promise<void> {
    const { worker, config } = this;
    const names: Lane[] = [];
    const lanes: RunningLane[] = [];
    for (const model of loaded) {
      const { name, version } = model.serving;
      for (let shard = 0; shard < config.BATON_SHARDS; shard++) {
        const lane = { model: name, version, shard };
        names.push(lane);
        lanes.push(await this.openLane(model, lane));
      }
    }
    const { BATON_REDIS_URL: redisUrl, BATON_LOG_LEVEL: logLevel } = config;
    declareEstate({ consumer: worker, lanes: names, redisUrl, logLevel });
    this.lifecycle.onClose("lanes", async () => {
      await Promise.all(lanes.map((lane) => lane.drain()));
    });
  }

  private openLane(model: LoadedModel, lane: Lane): Promise<RunningLane> {
    const { redis, bus, clock, connections, config, worker, log } = this;
    // One for all tries: a lane that fails to open leaves it behind.
    const reader = connectBlockingReader({ url: config.BATON_REDIS_URL, name: worker, log });
    const queue = { redis, lane, consumer: worker, streams: model.kind === "generator" };
    const open = () =>
      openLane({
        queue,
        reader,
        work: this.workOf(model, queue),
        bus,
        clock,
        connections,
        leaseMs: config.BATON_LEASE_MS,
        stateCacheBytes: config.BATON_STATE_CACHE_BYTES,
        log: log.child({ model: lane.model }),
      });
    return retrying(open, { budgetMs: START_BUDGET_MS });
  }

  private workOf(model: LoadedModel, queue: LaneQueue): LaneWork {
    const { config, solitude } = this;
    const shared = { solitude, maxRunsAlone: config.BATON_MAX_RUNS_ALONE };
    if (model.kind === "generator")
      return generatorWork(model.serving, { ...shared, queue: { ...queue, streams: true } });
    return batchWork(model.serving, { ...shared, limits: { maxStateBytes: config.BATON_MAX_STATE_BYTES } });
  }

  private announce(announcement: Announcement, { BATON_LEASE_MS, BATON_HEALTH_FILE }: WorkerConfig): void {
    const { redis, log } = this;
    const announcing = new AbortController();
    const announced = announceWhileOpen(redis, announcement, BATON_LEASE_MS, log, announcing.signal, BATON_HEALTH_FILE);
    this.lifecycle.onClose("announcement", async () => {
      announcing.abort();
      await announced;
      await announce(redis, announcement, 0);
    });
  }
}
