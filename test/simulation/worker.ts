/** Puts the queue loops of a worker together, like worker/fleet-member.ts, with a single model. */
import { RunNames } from "#shared/contract/checkpoint.js";
import { pinOf } from "#shared/queue/address.js";
import { lanesOf } from "#shared/queue/work/lane.js";
import { notePins } from "#shared/queue/work/upkeep/note-pins.js";
import { RedisClocks } from "#shared/redis/clock.js";
import { whenReady } from "#shared/redis/connect.js";
import { retrying } from "#shared/retry.js";
import type { Random } from "../support/fleet/random.js";
import { Exclusive } from "../../worker/lane/exclusive.js";
import { laneContext, RunningLane } from "../../worker/lane/lane.js";
import { OutageGuard } from "../../worker/lane/outage-guard.js";
import { ReplyPublisher } from "../../worker/lane/publish.js";
import { Reader } from "../../worker/lane/reader.js";
import { Liveness } from "../../worker/liveness/liveness.js";
import { TensorWork } from "../../worker/tensors/loop.js";
import { announcementOf } from "../fixtures/served-models.js";
import { secret } from "./deployment.js";
import { servedChain, servingChain, type ModelPlan } from "./model.js";
import { Process, type Setting } from "./process.js";

/** How long a worker tries the steps of its start that it cannot do without. */
const START_BUDGET_MS = 60_000;
const STATE_CACHE_BYTES = 67_108_864;

export class Worker extends Process {
  /** Ends all open parts, the last first. */
  #closers: (() => Promise<void> | void)[] = [];
  isReady = false;

  /** @param boot an id of this start, which no other start has */
  constructor(setting: Setting, boot: string, plan: ModelPlan, random: Random) {
    super(setting, `worker.${boot}`, random);
    void this.#open(boot, plan).catch((error: unknown) => {
      this.setting.trace.note(this.name, `could not start: ${String(error)}`);
      this.kill();
    });
  }

  /** Hands back its steps, and leaves, as a worker does on SIGTERM. */
  async leave(): Promise<void> {
    if (this.owner.isDead || !this.isReady) return;
    this.setting.trace.note(this.name, "LEAVES");
    for (const close of this.#closers.reverse()) await close();
    this.kill();
  }

  async #open(boot: string, plan: ModelPlan): Promise<void> {
    const { world, log, name: worker } = this;
    const { buckets, leaseMs, nats } = this.setting;
    const redis = this.connect("redis");
    const bus = nats.busOf(this.owner);
    const clocks = new RedisClocks(redis, world);
    const outageGuard = new OutageGuard(leaseMs, world.now());
    await whenReady(redis, new AbortController().signal);
    const start = { budgetMs: START_BUDGET_MS, world };
    await retrying(() => clocks.read(), start);
    const health = { buckets, healthFile: undefined };
    const liveness = new Liveness({ redis, bus, worker, clocks, outageGuard, leaseMs, ...health, world, log });
    this.#closers.push(() => liveness.end());
    const served = servedChain(plan);
    const replies = new ReplyPublisher({ bus, redis, secret, world, log });
    const leaving = new AbortController();
    const beating = replies.beatWhileOpen(leaving.signal);
    this.#closers.push(async () => {
      leaving.abort();
      await beating;
    });
    const reading = new Reader({
      redis: this.connect("reader", true),
      commands: redis,
      consumer: worker,
      world,
      log,
    });
    const serving = servingChain(plan, world);
    const setAside = { entries: 100, ageMs: 3_600_000 };
    const own = { redis, consumer: worker, streams: false, setAside, shortScripts: this.setting.shortScripts };
    const queue = { ...own, model: serving.name, ...pinOf(served), buckets };
    const context = laneContext({
      queue,
      replies,
      models: 1,
      living: () => liveness.living,
      bus,
      clocks,
      maxIdleMs: serving.maxIdleMs,
      history: serving.history,
      outageGuard,
      stateCacheBytes: STATE_CACHE_BYTES,
      room: reading.room,
      world,
      log,
    });
    const work = new TensorWork(serving, context, {
      exclusive: new Exclusive(),
      maxRunsAlone: 1_000,
      limits: { maxStateBytes: 1_048_576, runs: new RunNames(boot) },
    });
    const lane = new RunningLane(context, work, reading);
    liveness.register(lane);
    this.#closers.push(async () => {
      await liveness.unregister(lane);
      await lane.drain();
      await reading.stop();
    });
    const announcement = { ...announcementOf([served]), worker };
    await liveness.join(announcement, lanesOf(queue), START_BUDGET_MS);
    const pin = { model: serving.name, ...pinOf(served), streams: false, maxIdleMs: serving.maxIdleMs };
    await retrying(() => notePins(redis, [pin]), start);
    this.#closers.push(() => liveness.leave());
    this.isReady = true;
    this.setting.trace.note(worker, "ready");
  }
}
