/**
 * Keeps a worker process in the fleet: one heartbeat for all entries of the process, on the thread
 * that never computes. The answer names silent workers, and the graves of dead workers. Safety does
 * not depend on the heartbeat, because Redis refuses a commit unless the worker still owns the
 * entry. The heartbeat only saves work.
 */
import { writeFile } from "node:fs/promises";
import type { Logger } from "pino";
import type { Announcement } from "#shared/contract/announcement.js";
import type { Lane } from "#shared/queue/address.js";
import { announce } from "#shared/queue/work/liveness/announce.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import { heartbeat, type BeatAnswer, type FleetNews, type Silent } from "#shared/queue/work/liveness/heartbeat.js";
import { byLane, inLane } from "#shared/queue/work/lane.js";
import { ownedByLane, ownedEntries } from "#shared/queue/work/read/owned.js";
import { registryKeys } from "#shared/queue/keys.js";
import { ProcessReports } from "#shared/queue/processes/reports.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RedisClocks } from "#shared/redis/clock.js";
import { reachesOthers, type RedisClient } from "#shared/redis/connect.js";
import { OwnConnection } from "#shared/redis/own-connection.js";
import { delay, retrying } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import { LivenessCounts } from "./counts.js";
import { Reclaimer, type HeldModel } from "./reclaimer.js";
import { callOut, listenForCalls } from "./grave-calls.js";
import { APART_MS } from "./judge.js";
import type { WorkerMeter } from "./load.js";
import { asksWith, ASKS_WITHIN_MS, beatEvery, followsAt, JITTER, NEWS_MS, silenceAfter } from "./pace.js";
import { Watch } from "./watch.js";

export interface LivenessSettings {
  /** A connection for short commands; the worker's other parts may share it. */
  readonly redis: RedisClient;
  /** The bus for calls about graves; undefined: each worker learns of graves with its beats. */
  readonly bus?: Pick<Bus, "publish" | "subscribe">;
  /** The worker's name, also its consumer's name in the group of each lane. */
  readonly worker: string;
  readonly clocks: RedisClocks;
  readonly outageGuard: OutageGuard;
  readonly leaseMs: number;
  /** Lanes of each model version. */
  readonly buckets: number;
  /**
   * File to write while Redis answers the beats; a container's health check looks at the file's
   * age.
   */
  readonly healthFile: string | undefined;
  /** Called with the number of the fleet's wish, if there is one; absent if nobody follows it. */
  readonly onWish?: ((number: number) => void) | undefined;
  /** Called with the log's verbosity; undefined if operators have not changed it. */
  readonly onVerbosity?: ((verbosity: number | undefined) => void) | undefined;
  /** Measures the load of the process; absent if the process tells none. */
  readonly meter?: WorkerMeter;
  readonly world?: World;
  readonly log: Logger;
}

/** Longest try to leave the fleet, in ms. Other workers find the remaining entries later, too. */
const LEAVE_BUDGET_MS = 5_000;
/**
 * After this part of a lease without an answer from Redis, the worker gives up its waiting steps.
 * Other workers are about to take these steps.
 */
const GIVE_UP_AFTER = 0.8;
/** Least time between two writes of the health file, in ms. Its readers look at seconds. */
const HEALTH_EVERY_MS = 500;

export class Liveness {
  readonly #settings: LivenessSettings;
  readonly #world: World;
  readonly #connection: OwnConnection;
  readonly #watch: Watch;
  readonly #reclaimer: Reclaimer;
  readonly #counts = new LivenessCounts();
  readonly #reports: ProcessReports;
  readonly #ended = new AbortController();
  #nap = new AbortController();
  #announced: { readonly announcement: Announcement; readonly lanes: readonly Lane[] } | undefined;
  #beating: Promise<void> = Promise.resolve();
  /** Whether the worker takes no more work, so that it never announces itself again. */
  #isLeaving = false;
  /** The connection that the registry knows. */
  #noted: string | undefined;
  /** Number of workers in the fleet, this worker included, by the last answer. */
  #living = 1;
  #isLooking = false;
  /** When a beat that asked was last answered, on `performance.now()`'s clock. */
  #toldAt = -Infinity;
  /** Whether a call about a grave has come since the last beat. */
  #isCalled = false;
  /** The due time of the beat that follows the last call, on `performance.now()`'s clock. */
  #followedAt = -Infinity;
  #stopListening: () => void = () => undefined;
  /** Whether the worker has given up waiting steps since the last answered beat. */
  #hasGivenUp = false;
  #healthAt = -Infinity;

  constructor(settings: LivenessSettings) {
    this.#settings = settings;
    const { redis, bus, world = realWorld, log } = settings;
    this.#world = world;
    this.#connection = new OwnConnection(redis, registryKeys.workers, log, () => this.#wake(), world);
    const onBuried = (lanes: readonly Lane[]) => bus !== undefined && callOut(bus, lanes);
    this.#watch = new Watch({ ...settings, world, connection: this.#connection, counts: this.#counts, onBuried });
    this.#reclaimer = new Reclaimer({ ...settings, world });
    this.#reports = new ProcessReports(settings.worker);
  }

  /** Number of workers in the fleet, this worker included, by the last answer. */
  get living(): number {
    return this.#living;
  }

  /**
   * From now on the worker takes entries of this model's lanes over, and watches the model's
   * holdings.
   */
  register(model: HeldModel): void {
    this.#reclaimer.add(model);
    if (model.report !== undefined) this.#reports.add(model.report);
  }

  /** Resolves when no takeover for the model is under way. The caller may then drain the lanes. */
  unregister(model: HeldModel): Promise<void> {
    return this.#reclaimer.remove(model);
  }

  /**
   * Joins the living, and beats until `end`.
   * @param lanes all lanes that the worker serves
   * @param budgetMs the longest try to join
   * @throws the Redis error if the budget is spent
   */
  async join(announcement: Announcement, lanes: readonly Lane[], budgetMs: number): Promise<void> {
    this.#announced = { announcement, lanes };
    await retrying(() => this.#announce(), { budgetMs, world: this.#world });
    const { bus } = this.#settings;
    if (bus !== undefined) this.#stopListening = await listenForCalls(bus, (keys) => this.#hear(keys));
    this.#beating = this.#beatWhileOpen();
  }

  /** Announces that the worker takes no more work. The beats continue while the worker drains. */
  async leave(): Promise<void> {
    const { redis, worker } = this.#settings;
    this.#isLeaving = true;
    await retrying(() => bury(redis, worker, { why: "leaving" }, []), {
      budgetMs: LEAVE_BUDGET_MS,
      world: this.#world,
    });
    this.#counts.buried("left");
  }

  /** Ends the beats, and leaves all remaining entries of this worker to other workers. */
  async end(): Promise<void> {
    const { redis, worker, leaseMs } = this.#settings;
    this.#ended.abort();
    this.#stopListening();
    this.#wake();
    await this.#beating;
    this.#settings.meter?.stop();
    if (this.#announced === undefined) return;
    const { lanes } = this.#announced;
    const depart = async () => {
      await this.#reportAll();
      const left = await ownedByLane(redis, worker, lanes);
      await bury(
        redis,
        worker,
        { why: "ended", leaseMs },
        left.map(({ lane }) => lane),
      );
    };
    await retrying(depart, { budgetMs: LEAVE_BUDGET_MS, world: this.#world });
  }

  /** Sends what no beat has brought. The burial that follows keeps it. */
  async #reportAll(): Promise<void> {
    const { redis, worker, leaseMs } = this.#settings;
    const report = this.#reports.next(this.#world.now(), { toRedis: this.#toRedis, isLast: true });
    if (report.length === 0) return;
    const { said } = await heartbeat(redis, { worker, leaseMs, silentMs: undefined, connection: undefined, report });
    if (said === "noted") this.#reports.arrived();
  }

  readonly #toRedis = (at: number): number => this.#settings.clocks.of(registryKeys.workers).toRedis(at);

  async #beatWhileOpen(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      this.#nap = new AbortController();
      await this.#beat();
      const { signal } = this.#nap;
      const pauseMs = this.#pause();
      const dueAt = this.#world.now() + pauseMs;
      if (this.#ended.signal.aborted) return;
      await delay(pauseMs, signal, this.#world);
      // A beat before its time is never late.
      if (!signal.aborted) this.#counts.beat(this.#world.now() - dueAt);
    }
  }

  /** Beats at once. */
  #wake(): void {
    this.#nap.abort();
  }

  /** Beats soon if the call names a lane that this worker serves. */
  #hear(keys: readonly string[]): void {
    if (this.#isCalled || !this.#reclaimer.serves(keys)) return;
    this.#isCalled = true;
    const now = this.#world.now();
    this.#followedAt = followsAt(now, this.#followedAt, this.#living, this.#world.random());
    delay(this.#followedAt - now, this.#ended.signal, this.#world)
      .then(() => this.#wake())
      .catch((error: unknown) => this.#settings.log.debug({ error: String(error) }, "a call to a grave failed"));
  }

  /** The time until the next beat, in ms: shortest if that beat may decide about a worker. */
  #pause(): number {
    if (this.#watch.isCurious) return APART_MS;
    return beatEvery(this.#living, this.#settings.leaseMs) * (1 - JITTER + this.#world.random() * 2 * JITTER);
  }

  async #beat(): Promise<void> {
    const { redis, worker, outageGuard, leaseMs, meter, log } = this.#settings;
    const { name } = this.#connection;
    const mayAsk = !this.#isLooking && outageGuard.silenceCounts(this.#world.now());
    const isOverdue = this.#world.now() - this.#toldAt >= ASKS_WITHIN_MS;
    const asks = mayAsk && (this.#watch.isCurious || this.#world.random() < asksWith(this.#living) || isOverdue);
    const silentMs = asks ? silenceAfter(this.#living, leaseMs) : undefined;
    const connection = name === this.#noted ? undefined : name;
    if (connection !== undefined) this.#reports.repeat();
    const report = this.#reports.next(this.#world.now(), { toRedis: this.#toRedis });
    const load = meter?.next(this.#world.now(), this.#reclaimer.models);
    this.#isCalled = false;
    let answer: BeatAnswer;
    try {
      // A lone worker asks with each beat.
      const wantsNews = this.#world.now() - this.#toldAt >= NEWS_MS;
      answer = await heartbeat(redis, { worker, leaseMs, silentMs, wantsNews, connection, load, report });
    } catch (error) {
      return this.#giveUpWaiting(error);
    }
    try {
      await this.#answered(answer, name);
    } catch (error) {
      log.debug({ error: String(error) }, "what a beat has told could not be done; the next one follows");
    }
  }

  async #answered(answer: BeatAnswer, name: string | undefined): Promise<void> {
    const { clocks, outageGuard } = this.#settings;
    const now = this.#world.now();
    clocks.of(registryKeys.workers).observe(answer.redisNow);
    outageGuard.answered(now);
    this.#touch(now);
    if (answer.said === "unknown") {
      if (!this.#isLeaving) await this.#announce();
      await this.#dropLost();
    } else {
      this.#noted = name;
      this.#reports.arrived();
      const { news, graves, redisNow } = answer;
      if (news !== undefined) {
        this.#living = news.living;
        if (news.wish > 0) this.#settings.onWish?.(news.wish);
        if (news.logging !== undefined) {
          this.#toldAt = now;
          this.#settings.onVerbosity?.(news.logging.verbosity);
        }
        this.#look(silentIn(news, redisNow, this.#settings.leaseMs), redisNow);
      }
      this.#reclaimer.visit(graves, this.#living);
    }
    this.#reclaimer.takeBack(this.#hasGivenUp);
    this.#hasGivenUp = false;
  }

  /** Looks at the silent workers while the beats continue. */
  #look(silent: readonly Silent[], redisNow: number): void {
    this.#isLooking = true;
    this.#watch
      .look(silent, redisNow)
      .then(
        // The next beat has the list of open graves.
        (buried) => buried > 0 && this.#wake(),
        (error: unknown) => this.#settings.log.debug({ error: String(error) }, "a look at the silent failed"),
      )
      .finally(() => (this.#isLooking = false));
  }

  async #announce(): Promise<void> {
    if (this.#announced === undefined) return;
    const { redis, clocks, leaseMs } = this.#settings;
    const { name: connection } = this.#connection;
    const { redisNow, isReportPast } = await announce(redis, { ...this.#announced, leaseMs, connection });
    if (isReportPast) this.#reports.startAfterPast();
    // A registry that was wiped has nothing of the report.
    else this.#reports.repeat();
    clocks.of(registryKeys.workers).observe(redisNow);
    this.#noted = connection;
  }

  /** Gives up the steps that other workers took while this worker counted as dead. */
  async #dropLost(): Promise<void> {
    const { log } = this.#settings;
    for (const { queue, holdings } of this.#reclaimer.models) {
      for (const [lane, unbegun] of byLane(holdings.unbegun())) {
        const owned = new Set(await ownedEntries(inLane(queue, lane)));
        const lost = unbegun.filter(({ entry }) => !owned.has(entry));
        holdings.leave(lost, this.#world.now());
        if (lost.length > 0) log.warn({ steps: lost.length }, "steps were taken over: this worker counted as dead");
      }
    }
  }

  /**
   * Gives up all waiting steps after a long time without an answer. By then other workers have most
   * likely taken these steps over, and they would run twice. If a Cluster's other masters answer,
   * most likely a replica is replacing the registry's master. Until then no worker can take steps
   * over, so this worker keeps its own.
   */
  #giveUpWaiting(error: unknown): void {
    const { redis, outageGuard, leaseMs, log } = this.#settings;
    const now = this.#world.now();
    if (outageGuard.silentFor(now) <= leaseMs * GIVE_UP_AFTER || reachesOthers(redis)) return;
    this.#hasGivenUp = true;
    let steps = 0;
    for (const { holdings } of this.#reclaimer.models) {
      const unbegun = holdings.unbegun();
      holdings.leave(unbegun, now);
      steps += unbegun.length;
    }
    if (steps > 0) log.warn({ steps, error: String(error) }, "steps given up: this worker is cut off");
  }

  #touch(now: number): void {
    const { healthFile, worker, log } = this.#settings;
    if (healthFile === undefined || now - this.#healthAt < HEALTH_EVERY_MS) return;
    this.#healthAt = now;
    writeFile(healthFile, worker).catch((error: unknown) =>
      log.debug({ error: String(error) }, "the health file cannot be written"),
    );
  }
}

/**
 * Filters the silent workers by the newest size of the fleet. If the fleet has grown since this
 * worker asked last, beats are rarer than this worker believed, and some of the named workers are
 * not silent.
 */
function silentIn({ living, silent }: FleetNews, redisNow: number, leaseMs: number): readonly Silent[] {
  const silentMs = silenceAfter(living, leaseMs);
  return silent.filter(({ aliveUntil }) => redisNow + leaseMs - aliveUntil >= silentMs);
}
