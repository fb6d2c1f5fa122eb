/**
 * A worker as a member of the fleet: its connections, the lanes of its models, and how it joins and
 * leaves.
 */
import { hostname } from "node:os";
import type { Logger } from "pino";
import { showBus, showRedis } from "#shared/metrics/brokers.js";
import { cells } from "#shared/metrics/cells.js";
import { droppedSpans } from "#shared/metrics/process.js";
import type { MetricsPlace } from "#shared/metrics/place.js";
import { boot, version } from "#shared/boot.js";
import type { Announcement, ServedModel } from "#shared/contract/announcement.js";
import { pinOf, type Lane } from "#shared/queue/address.js";
import type { Lifecycle } from "#shared/lifecycle.js";
import { LogLevel } from "#shared/log.js";
import { linkOf } from "#shared/nats/client.js";
import { connectBus, type Bus } from "#shared/nats/connect.js";
import { RedisClocks } from "#shared/redis/clock.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { lanesOf } from "#shared/queue/work/lane.js";
import { notePins } from "#shared/queue/work/upkeep/note-pins.js";
import type { ServedPin } from "#shared/queue/pins.js";
import { readWish, type Wish } from "#shared/queue/wish.js";
import { setAsideEntries } from "#shared/queue/pieces/set-aside.js";
import { joinDeployment, type Deployment } from "#shared/queue/deployment.js";
import { localAddress } from "#shared/redis/local-address.js";
import { checkServer } from "#shared/redis/server.js";
import { retrying } from "#shared/retry.js";
import { SleepingStates } from "#shared/sleeping-states.js";
import { openTracer } from "#shared/trace/open.js";
import type { Tracer } from "#shared/trace/span.js";
import { Exclusive } from "./lane/exclusive.js";
import { beginToRead, type Reading } from "./lane/reading.js";
import { EnsembleWork, type StepModel } from "./ensembles/work.js";
import { TensorWork, type TensorWorkSettings } from "./tensors/loop.js";
import type { ServingModel } from "./tensors/serving.js";
import type { WorkerConfig } from "./config.js";
import type { DescribedDevice } from "./devices/card.js";
import { deathsIn } from "./supervision/deaths.js";
import { TokenPublisher } from "./streams/publisher.js";
import { StoredRuns, type RunLogParts } from "./streams/run-log.js";
import { StreamWork } from "./streams/work.js";
import { ReplyPublisher } from "./lane/publish.js";
import { laneContext, RunningLane, type LaneContext, type LaneSettings, type LaneWork } from "./lane/lane.js";
import { FIRST_RESPONSE } from "./models/validate/figures.js";
import { sessionsOf, type LoadedModel, type LoadReport } from "./load-models.js";
import { OutageGuard } from "./lane/outage-guard.js";
import { Liveness } from "./liveness/liveness.js";
import { WorkerMeter } from "./liveness/load.js";
import { StepTraces } from "./trace/step-traces.js";
import { lookAt, watchRepository, type Looked } from "./repository/look.js";
import { isBehind } from "./repository/choice.js";
import { forgetRefusals, RollOuts } from "./repository/roll-outs.js";
import { tellSupervisor, type Replaced } from "./supervision/messages.js";
import { hibernateWhileOpen } from "./upkeep/hibernate.js";
import { linger } from "./upkeep/linger.js";
import { lookAfterPins } from "./upkeep/upkeep.js";

/** In ms. A starting worker that cannot reach Redis for longer than this gives up. */
const START_BUDGET_MS = 60_000;

/** How the worker's models follow their repository and the fleet's wish. */
export interface Following {
  /** The worker whose place this worker takes; undefined if it takes none. */
  readonly replaced: Replaced | undefined;
  /** Undefined if clients do not load and unload models. */
  readonly obeys: Announcement["obeys"];
  /** The look at the repository before the models were loaded; undefined if nobody looks again. */
  readonly looked: Looked | undefined;
  /** Called when another worker has taken this worker's place, and this worker has no work. */
  readonly onRetire: () => void;
}

export class FleetMember {
  /**
   * The configured name and a random id of this start. The id keeps a restarted process from
   * passing as its former self.
   */
  private readonly worker: string;
  private readonly config: WorkerConfig;
  private readonly metrics: MetricsPlace | undefined;
  private readonly lifecycle: Lifecycle;
  private readonly log: Logger;
  private readonly logLevel: LogLevel;
  private readonly redis: RedisClient;
  private readonly bus: Bus;
  private readonly exclusive = new Exclusive();
  private readonly clocks: RedisClocks;
  private readonly outageGuard: OutageGuard;
  /** The wish that the worker obeys; undefined if it follows none. */
  private wish: Wish | undefined;
  /** Undefined if the worker makes no traces. */
  private tracer: Tracer | undefined;

  /**
   * Starts the connections without waiting for them. `lifecycle` closes them.
   * @param metrics the place of this worker's metrics, if it shows any
   */
  constructor(config: WorkerConfig, metrics: MetricsPlace | undefined, lifecycle: Lifecycle, log: Logger) {
    this.worker = `${config.BATON_WORKER_NAME}.${boot}`;
    this.config = config;
    this.metrics = metrics;
    this.lifecycle = lifecycle;
    this.log = log;
    this.logLevel = new LogLevel(log);
    this.redis = connectRedis({
      url: config.BATON_REDIS_URL,
      name: this.worker,
      durability: config.BATON_DURABILITY,
      log,
    });
    showRedis(cells, this.redis);
    lifecycle.onClose("redis", () => this.redis.disconnect());
    this.clocks = new RedisClocks(this.redis);
    this.outageGuard = new OutageGuard(config.BATON_LEASE_MS, performance.now());
    this.bus = connectBus({
      ...linkOf(config),
      captures: config.BATON_CAPTURE_TTL_MS > 0,
      name: this.worker,
      log,
    });
    showBus(cells, this.bus);
    for (const [signal, count] of deathsIn(process.env)) {
      cells.add(cells.counter("baton_supervisor_restarts_total", { signal }), count);
    }
    lifecycle.onClose("nats", () => this.bus.close());
  }

  /** Reads which models clients want. The worker loads its models after that. */
  async readWish(): Promise<Wish> {
    await whenReady(this.redis, AbortSignal.timeout(START_BUDGET_MS));
    this.wish = await retrying(() => readWish(this.redis), { budgetMs: START_BUDGET_MS });
    return this.wish;
  }

  /**
   * Resolves once the lanes are open and the worker has announced itself.
   *
   * @param device the worker's device, for the announcement
   * @throws Error if the worker cannot use Redis, or if the deployment in Redis has other settings
   */
  async join({ loaded, failed }: LoadReport, device: DescribedDevice, following: Following): Promise<void> {
    const { worker, config, log } = this;
    await this.beginToTrace();
    await whenReady(this.redis, AbortSignal.timeout(START_BUDGET_MS));
    await checkServer(this.redis, log);
    const leaving = new AbortController();
    this.lifecycle.onClose("deployment", () => leaving.abort());
    const terms = { redis: this.redis, buckets: config.BATON_BUCKETS, log, signal: leaving.signal };
    const deployment = await joinDeployment(terms);
    const { buckets } = deployment;
    // Entries carry deadlines in Redis's time.
    await retrying(() => this.clocks.read(), { budgetMs: START_BUDGET_MS });
    const readingClocks = this.clocks.watch(leaving.signal);
    this.lifecycle.onClose("clocks", () => readingClocks);
    const { replaced, obeys } = following;
    const serves = new Set(loaded.map(({ served }) => served.name));
    const rollOuts = new RollOuts({
      redis: this.redis,
      worker,
      number: obeys?.number,
      isBehind: (wish) => this.wish === undefined || isBehind(config, { read: this.wish, serves }, wish),
      log,
    });
    const liveness = new Liveness({
      onWish: (number) => rollOuts.wished(number),
      onVerbosity: (verbosity) => this.logLevel.follow(verbosity),
      redis: this.redis,
      bus: this.bus,
      worker,
      clocks: this.clocks,
      outageGuard: this.outageGuard,
      leaseMs: config.BATON_LEASE_MS,
      buckets,
      healthFile: config.BATON_HEALTH_FILE,
      meter: new WorkerMeter(config.BATON_LEASE_MS),
      log,
    });
    this.lifecycle.onClose("liveness", () => liveness.end());
    const sleeping = new SleepingStates(config.BATON_HIBERNATE_DIR, deployment.secret(), log);
    const lanes = this.openLanes(loaded, { buckets, sleeping }, liveness, this.beginToReply(deployment));
    const models = loaded.map(({ served }) => served);
    const announcement = {
      worker,
      host: hostname(),
      pid: process.pid,
      startedAt: Date.now(),
      device,
      models,
      failed,
      version,
      replaces: replaced?.worker,
      obeys,
      metrics: this.metrics?.address(localAddress(this.redis)),
    };
    await liveness.join(announcement, lanes, START_BUDGET_MS);
    await retrying(() => notePins(this.redis, loaded.map(servedPin)), { budgetMs: START_BUDGET_MS });
    this.beginUpkeep(buckets);
    if (config.BATON_HIBERNATE_DIR !== undefined) this.beginToHibernate(loaded, buckets, sleeping);
    this.lifecycle.onClose("membership", () => liveness.leave());
    await this.follow(following, rollOuts, lanes);
    log.info({ worker, models: models.map(({ name, version }) => `${name}/${version}`) }, "worker ready");
  }

  /** Lets the supervisor replace this worker from now on. */
  private async follow({ replaced, looked, onRetire }: Following, rollOuts: RollOuts, lanes: readonly Lane[]) {
    const { redis, worker, clocks, config, lifecycle, log } = this;
    const leaving = new AbortController();
    lifecycle.onClose("roll-outs", () => leaving.abort());
    rollOuts.listen(() => {
      linger({ redis, worker, lanes, clocks, log }, leaving.signal)
        .catch((error: unknown) => log.warn({ error: String(error) }, "the rest of the work is left to other workers"))
        .finally(onRetire);
    });
    if (looked !== undefined) {
      const { BATON_MODEL_REPOSITORY: repositories, BATON_REPOSITORY_POLL_MS: everyMs } = config;
      const look = () => lookAt(repositories, looked.models);
      const onChange = () => rollOuts.ask("the repository has changed");
      void watchRepository({ loaded: looked.files, look, everyMs, onChange }, leaving.signal);
    }
    await retrying(() => forgetRefusals(redis, replaced?.worker), { budgetMs: START_BUDGET_MS });
    void tellSupervisor({ says: "serves" });
  }

  private async beginToTrace(): Promise<void> {
    const { config, worker, log } = this;
    const terms = { role: "worker", process: worker } as const;
    const tracer = await openTracer(config, {
      ...terms,
      log: (fields, line) => log.warn(fields, line),
      onDropped: droppedSpans(cells),
    });
    this.tracer = tracer;
    if (tracer !== undefined) this.lifecycle.onClose("traces", () => tracer.close());
  }

  /** The publisher closes after the lanes, because draining lanes still publish outcomes. */
  private beginToReply({ secret }: Deployment): ReplyPublisher {
    const { bus, redis, log } = this;
    const replies = new ReplyPublisher({ bus, redis, secret, log });
    const leaving = new AbortController();
    const beating = replies.beatWhileOpen(leaving.signal);
    this.lifecycle.onClose("replies", async () => {
      leaving.abort();
      await beating;
    });
    return replies;
  }

  /** Upkeep ends before the lanes close, so a draining worker starts no new round. */
  private beginUpkeep(buckets: number): void {
    const { redis, bus, worker, clocks, outageGuard, log } = this;
    const leaving = new AbortController();
    const looking = lookAfterPins({ redis, bus, worker, buckets, clocks, outageGuard, log }, leaving.signal);
    this.lifecycle.onClose("upkeep", async () => {
      leaving.abort();
      await looking;
    });
  }

  private beginToHibernate(loaded: readonly LoadedModel[], buckets: number, states: SleepingStates): void {
    const { redis, worker, config, log } = this;
    const models = loaded.flatMap(({ serving: { name, maxIdleMs } }) =>
      maxIdleMs === undefined ? [] : [{ model: name, maxIdleMs }],
    );
    const leaving = new AbortController();
    const afterMs = config.BATON_HIBERNATE_AFTER_MS;
    const running = hibernateWhileOpen({ redis, worker, buckets, models, afterMs, states, log }, leaving.signal);
    this.lifecycle.onClose("hibernation", async () => {
      leaving.abort();
      await running;
    });
  }

  /** @returns all lanes of the loaded models, now open */
  private openLanes(
    loaded: readonly LoadedModel[],
    { buckets, sleeping }: { readonly buckets: number; readonly sleeping: SleepingStates },
    liveness: Liveness,
    replies: ReplyPublisher,
  ): Lane[] {
    const { redis, worker, config, log } = this;
    const { BATON_REDIS_URL: redisUrl, BATON_LOG_LEVEL: logLevel } = config;
    const setAside = {
      entries: setAsideEntries(config.BATON_DEAD_BYTES, buckets),
      ageMs: config.BATON_DEAD_TTL_MS,
    };
    const reading = beginToRead(redis, { url: redisUrl, name: worker, log }, buckets);
    const callable = new Map<ServedModel, StepModel>();
    const opened = loaded.map((model) => {
      const { serving, served } = model;
      const streams = hasStreams(model);
      const shared = { redis, consumer: worker, setAside, shortScripts: config.BATON_SHORT_SCRIPTS };
      const queue = { ...shared, streams, model: serving.name, ...pinOf(served), buckets };
      const running = this.openLane(model, {
        queue,
        reading,
        replies,
        sleeping,
        models: loaded.length,
        living: () => liveness.living,
        callable,
      });
      liveness.register(running);
      return running;
    });
    const lanes = opened.flatMap(({ queue }) => lanesOf(queue));
    const release = { consumer: worker, lanes, leaseMs: config.BATON_LEASE_MS, redisUrl, logLevel };
    const models = loaded.map(({ served: { name, version: number }, isOnGpu = false }) => ({
      name,
      version: number,
      isOnGpu,
    }));
    void tellSupervisor({ says: "holds", release, models });
    this.lifecycle.onClose("lanes", async () => {
      const close = async (lane: RunningLane) => {
        await liveness.unregister(lane);
        await lane.drain();
      };
      // An ensemble comes behind the models that its steps run, which work for it until it is done.
      const ensembles = opened.filter((_, i) => loaded[i]?.kind === "ensemble");
      for (const lane of ensembles.reverse()) await close(lane);
      await Promise.all(opened.filter((lane) => !ensembles.includes(lane)).map(close));
      await reading.stop();
    });
    return lanes;
  }

  private openLane(
    model: LoadedModel,
    shared: Pick<LaneSettings, "queue" | "replies" | "sleeping" | "models" | "living"> & {
      readonly reading: Reading;
      readonly callable: Map<ServedModel, StepModel>;
    },
  ): RunningLane {
    const { bus, clocks, outageGuard, config, worker, tracer, log } = this;
    const { reading, callable, ...parts } = shared;
    const { name, version, placement } = model.served;
    const { labels = {}, firstResponse } = model.figures ?? {};
    cells.describeModel(name, version, { labels, bounds: firstResponse && { [FIRST_RESPONSE]: firstResponse } });
    const context = laneContext({
      ...parts,
      bus,
      clocks,
      maxIdleMs: model.serving.maxIdleMs,
      history: model.kind === "generator" ? 1 : model.serving.history,
      instances: model.kind === "generator" ? undefined : sessionsOf(model),
      takesBoth: takesBoth(model),
      outageGuard,
      stateCacheBytes: config.BATON_STATE_CACHE_BYTES,
      room: reading.room,
      traces: tracer && new StepTraces({ tracer, worker, model: name, version, provider: placement?.provider }),
      log: this.logLevel.govern(log.child({ model: parts.queue.model })),
    });
    const loadSeconds = (model.loadMs ?? 0) / 1_000;
    context.counts.show("nv_model_load_duration_secs", () => loadSeconds);
    return new RunningLane(context, this.workOf(model, context, callable), reading);
  }

  /** @param callable the models that steps of ensembles can run, to which this adds the model */
  private workOf(model: LoadedModel, context: LaneContext, callable: Map<ServedModel, StepModel>): LaneWork {
    const { config, exclusive } = this;
    const shared = { exclusive, maxRunsAlone: config.BATON_MAX_RUNS_ALONE };
    const { BATON_TIMINGS: timings } = config;
    const limits = { maxStateBytes: config.BATON_MAX_STATE_BYTES, timings };
    const make = (): LaneWork & StepModel => {
      switch (model.kind) {
        case "generator": {
          const queue = { ...context.queue, streams: true } as const;
          return new StreamWork(model.serving, context, { ...shared, timings, queue });
        }
        case "tensors":
          return this.tensorWorkOf(model.serving, context, { ...shared, limits });
        case "ensemble": {
          const models = model.serving.steps.map(({ served }) => callable.get(served) as StepModel);
          const runs = this.runLog(model.serving, context);
          return new EnsembleWork(model.serving, context, { ...shared, limits, runs, models });
        }
      }
    };
    const work = make();
    callable.set(model.callable.served, work);
    return work;
  }

  private tensorWorkOf(serving: ServingModel, context: LaneContext, shared: TensorWorkSettings): TensorWork {
    const isPlain = serving.iteration === undefined && serving.decoupled !== true;
    const runs = isPlain ? undefined : this.runLog(serving, context);
    return new TensorWork(serving, context, { ...shared, runs });
  }

  private runLog(model: RunLogParts["model"], { queue, settler, outageGuard, log }: LaneContext): StoredRuns {
    const publisher = new TokenPublisher({ redis: queue.redis, bus: settler.bus, log });
    this.lifecycle.onClose("answers", () => publisher.close());
    return new StoredRuns({ queue, model, settler, publisher, outageGuard, log });
  }
}

/** Whether the answers of a model's requests are records of logs. */
function hasStreams({ kind, serving }: LoadedModel): boolean {
  return kind === "generator" || serving.decoupled === true;
}

/** Whether a model with sequences also takes requests that are no steps. */
function takesBoth(model: LoadedModel): boolean {
  if (model.kind === "ensemble") return model.serving.takesBoth;
  return model.kind === "tensors" && model.serving.iteration !== undefined;
}

function servedPin(model: LoadedModel): ServedPin {
  const { serving, served } = model;
  const { name, maxIdleMs } = serving;
  return { model: name, ...pinOf(served), streams: hasStreams(model), maxIdleMs };
}
