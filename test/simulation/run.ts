/**
 * A run of the simulation: a fleet, a load, and faults meanwhile, all drawn from a seed. Then the
 * faults end, the load finishes, and the checker of `npm run chaos` judges the history.
 */
import type { Redis } from "ioredis";
import { sequencesKey } from "#shared/queue/keys.js";
import { parseFacts } from "#shared/queue/pieces/sequence.js";
import { seededRandom, type Random } from "../support/fleet/random.js";
import { limits } from "../support/sequences/experiment.js";
import type { CommitSample, Floor } from "../support/sequences/facts.js";
import { isSettled, labelOf, readFloor } from "../support/sequences/floor.js";
import { History } from "../support/sequences/history.js";
import { check } from "../support/sequences/invariants.js";
import type { Violation } from "../support/sequences/violation.js";
import { Nats } from "./bus.js";
import { Chaos } from "./chaos.js";
import type { Fault } from "./faults.js";
import { Gateway } from "./gateway.js";
import { Clients } from "./load.js";
import { MODEL } from "./model.js";
import { planRun, type RunPlan, type Strike } from "./plan.js";
import type { Process, Setting } from "./process.js";
import { Scheduler, Standstill } from "./scheduler.js";
import { TIME_KEY } from "./scripts.js";
import { Server, type Ran } from "./server.js";
import { Trace } from "./trace.js";
import { guarded } from "./trap.js";
import { Worker } from "./worker.js";

export interface Report {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** The same for two runs with the same history. */
  readonly digest: string;
  readonly simulatedMs: number;
  readonly requests: number;
  readonly plan: RunPlan;
  readonly trace: Trace;
  /**
   * The events that were still planned if the load did not finish; undefined if the load finished.
   */
  readonly stuck: string | undefined;
}

/**
 * A load without a commit for so long after the last fault is stuck, in simulated ms. The whole
 * load may take longer: two workers whose model takes a request at a time, often for a second, need
 * a minute for 350 steps.
 */
const PATIENCE_MS = 45_000;
/** How long the queue may take after that to become empty, in simulated ms. */
const QUIET_MS = 30_000;
const LEASE_MS = 1_000;

/** The terms of a run beside its seed. */
export interface RunTerms {
  readonly fault?: Fault | undefined;
  /** Whether steps may take the short scripts; absent: as the fault wants, or else true. */
  readonly shortScripts?: boolean | undefined;
}

/** @param real a connection to a server that this run has for itself */
export async function simulate(seed: number, real: Redis, terms: RunTerms = {}): Promise<Report> {
  await real.flushall();
  return guarded(() => new Run(seed, real, terms).whole());
}

class Run {
  readonly #seed: number;
  readonly #real: Redis;
  readonly #random: Random;
  readonly #plan: RunPlan;
  readonly #scheduler = new Scheduler();
  readonly #trace = new Trace(() => this.#scheduler.now);
  readonly #setting: Setting;
  readonly #history = new History(() => this.#scheduler.now);
  readonly #commits: CommitSample[] = [];
  #gateways: Gateway[] = [];
  #workers: Worker[] = [];
  #starts = 0;
  /** Each client of the load has ended. */
  #isOver = false;

  constructor(seed: number, real: Redis, { fault, shortScripts = fault?.shortScripts ?? true }: RunTerms) {
    this.#seed = seed;
    this.#real = real;
    this.#random = seededRandom(seed);
    this.#plan = planRun(this.#random.fork("plan"));
    const scheduler = this.#scheduler;
    const server = new Server(real, scheduler, fault?.replacements ?? []);
    const chaos = new Chaos(this.#random.fork("chaos"), scheduler, this.#plan.weather, (ran) => this.#sample(ran));
    const nats = new Nats(scheduler, chaos);
    const { buckets } = this.#plan;
    const stage = { scheduler, server, chaos, trace: this.#trace, fault };
    this.#setting = { ...stage, nats, buckets, leaseMs: LEASE_MS, shortScripts };
  }

  async whole(): Promise<Report> {
    const { durationMs, strikes, load } = this.#plan;
    const scheduler = this.#scheduler;
    for (let i = 0; i < this.#plan.gateways; i++) this.#gateways[i] = this.#startGateway();
    for (let i = 0; i < this.#plan.workers; i++) this.#workers[i] = this.#startWorker();
    for (const strike of strikes) scheduler.plan(undefined, strike.at, "a fault", () => this.#strike(strike));
    const clients = new Clients(this.#setting, () => this.#gateways, this.#history, this.#random);
    scheduler.plan(clients.owner, 300, "the load begins", () => {
      void clients.run(load).then(() => (this.#isOver = true));
    });
    let stuck: string | undefined;
    try {
      await scheduler.run(durationMs, () => this.#isOver);
      this.#setting.chaos.calm();
      this.#trace.note("the plan", "CALM");
      for (let before = -1; !this.#isOver && this.#commits.length > before;) {
        before = this.#commits.length;
        await scheduler.run(scheduler.now + PATIENCE_MS, () => this.#isOver);
      }
      if (!this.#isOver) stuck = scheduler.pending();
    } catch (error) {
      if (!(error instanceof Standstill)) throw error;
      stuck = error.message;
    }
    const floor = await this.#quiet(stuck === undefined ? QUIET_MS : 0);
    for (const process of [...this.#gateways, ...this.#workers, clients]) process.kill();
    return this.#judge(floor, stuck);
  }

  #startGateway(): Gateway {
    return new Gateway(this.#setting, `gw-${++this.#starts}`, this.#random);
  }

  #startWorker(): Worker {
    const boot = (++this.#starts).toString(16).padStart(12, "0");
    const random = this.#random.fork(`model ${boot}`);
    const { slow, ...model } = this.#plan.model;
    const runMs = () => (random.chance(slow) ? 1_800 : 25) * random.unit();
    return new Worker(this.#setting, boot, { ...model, runMs }, this.#random);
  }

  #strike({ kind, lot, ms }: Strike): void {
    const { scheduler, nats, chaos } = this.#setting;
    const w = Math.floor(lot * this.#workers.length);
    const g = Math.floor(lot * this.#gateways.length);
    const [worker, gateway] = [this.#workers[w], this.#gateways[g]];
    const any: Process | undefined = lot * 7 - Math.floor(lot * 7) < 0.6 ? worker : gateway;
    if (worker === undefined || gateway === undefined || any === undefined) return;
    const startWorker = () => void (this.#workers[w] = this.#startWorker());
    switch (kind) {
      case "worker dies":
        if (worker.owner.isDead) return;
        worker.kill();
        scheduler.plan(undefined, ms, "a worker starts", startWorker);
        break;
      case "worker leaves":
        if (worker.owner.isDead || !worker.isReady) return;
        scheduler.plan(worker.owner, 0, "a worker leaves", () => void worker.leave());
        scheduler.plan(undefined, ms, "a worker starts", () => {
          // Kills a worker that still drains after that long, as a supervisor would.
          worker.kill();
          startWorker();
        });
        break;
      case "gateway dies":
        if (gateway.owner.isDead) return;
        gateway.kill();
        scheduler.plan(undefined, ms, "a gateway starts", () => void (this.#gateways[g] = this.#startGateway()));
        break;
      case "worker freezes":
        worker.freeze(ms);
        break;
      case "gateway freezes":
        gateway.freeze(ms);
        break;
      case "redis is away":
        chaos.keepAway(any.name, ms);
        any.cut();
        break;
      case "nats is away":
        nats.cut(any.owner, ms);
        break;
    }
    this.#trace.note("the plan", `${kind}: ${any.name}, ${Math.round(ms)} ms`);
  }

  /** Reads the sequences after each commit, so that no wrong commit goes unseen. */
  async #sample({ names }: Ran): Promise<void> {
    if (!names.some((name) => name === "commit-steps.lua" || name === "commit-usual.lua")) return;
    const at = this.#history.now();
    const keys = Array.from({ length: this.#plan.buckets }, (_, b) => b);
    const pipeline = this.#real.pipeline();
    for (const bucket of keys) pipeline.hgetall(sequencesKey({ bucket, model: MODEL }));
    for (const [, found] of (await pipeline.exec()) ?? []) {
      for (const [name, text] of Object.entries((found ?? {}) as Record<string, string>)) {
        const { done, at: version } = parseFacts(text);
        const worker = version.split(".")[1] ?? "";
        this.#commits.push({ at, sequence: labelOf(name), done, worker, entry: version });
      }
    }
  }

  /** @returns the content of Redis at rest, or when the time is up */
  async #quiet(ms: number): Promise<Floor> {
    const scheduler = this.#scheduler;
    const until = scheduler.now + ms;
    for (;;) {
      if (ms > 0) await scheduler.run(scheduler.now + 1_000);
      await this.#real.del(TIME_KEY);
      const floor = await readFloor([this.#real]);
      if (isSettled(floor) || scheduler.now >= until) return floor;
    }
  }

  async #judge(floor: Floor, stuck: string | undefined): Promise<Report> {
    const used = Number(/used_memory:(\d+)/.exec(await this.#real.info("memory"))?.[1]);
    const resources = [{ at: this.#scheduler.now, name: "redis", what: "usedMemoryBytes" as const, value: used }];
    const { events } = this.#history;
    const violations = check({ events, floor, commits: this.#commits, resources, limits });
    return {
      seed: this.#seed,
      violations,
      digest: this.#trace.digest(),
      simulatedMs: this.#scheduler.now,
      requests: new Set(events.flatMap((event) => (event.kind === "submit" ? [event.ask.request] : []))).size,
      plan: this.#plan,
      trace: this.#trace,
      stuck,
    };
  }
}
