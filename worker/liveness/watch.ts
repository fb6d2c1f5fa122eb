/**
 * Watches over the other workers: those that are silent are looked at again, and those that are
 * dead are buried, so that what they held goes on elsewhere.
 */
import type { Logger } from "pino";
import type { Lane } from "#shared/queue/address.js";
import { announcedLanes } from "#shared/queue/work/announced-lanes.js";
import { bury } from "#shared/queue/work/bury.js";
import type { Silent } from "#shared/queue/work/heartbeat.js";
import { ownedByLane, type OwnedInLane } from "#shared/queue/work/owned.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { OwnConnection } from "#shared/redis/own-connection.js";
import type { World } from "#shared/world.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import { judge, worthAsking, type Missing } from "./judge.js";

export interface WatchSettings {
  readonly redis: RedisClient;
  readonly connection: Pick<OwnConnection, "name" | "upFor" | "present">;
  readonly outageGuard: OutageGuard;
  /** This worker, which is not looked at. */
  readonly worker: string;
  readonly leaseMs: number;
  /** How many lanes each model version has. */
  readonly buckets: number;
  readonly world: World;
  /** Is called with the lanes in which a worker that was buried has left entries. */
  readonly onBuried: (lanes: readonly Lane[]) => void;
  readonly log: Logger;
}

/**
 * Most workers that are buried after one look, by lot: where many die at once, the watchers share
 * the work, and do not all do all of it.
 */
const AT_ONCE = 8;

/**
 * So long after its burial a worker is looked at again, in ms. One that was frozen with a read
 * open, or that woke once more and could not yet hear that it counts as dead, may have been given
 * entries since. Where it has died by now, nobody else knows of those. What comes later still is
 * found by the reconciler.
 */
const AGAIN_MS = [1_000, 5_000, 20_000] as const;

/** A worker that this one has buried, and when it is looked at again. */
interface Buried {
  readonly worker: string;
  /** All that it served. */
  readonly lanes: readonly Lane[];
  /** On `performance.now()`'s clock, the next one first. */
  readonly looks: readonly number[];
}

export class Watch {
  readonly #settings: WatchSettings;
  #missing: Missing = new Map();
  #buried: readonly Buried[] = [];

  constructor(settings: WatchSettings) {
    this.#settings = settings;
  }

  /** Whether somebody is to be looked at again soon. */
  get isCurious(): boolean {
    return this.#missing.size > 0 || this.#due(this.#settings.world.now()).length > 0;
  }

  /**
   * Takes what a beat has told. Redis is asked who is connected only while a worker is silent.
   * @returns how many workers were buried
   * @throws the Redis error
   */
  async look(told: readonly Silent[], redisNow: number): Promise<number> {
    const { connection, outageGuard, worker, leaseMs } = this.#settings;
    const silent = told.filter((one) => one.worker !== worker);
    const facts = { silent, own: connection.name, upForMs: connection.upFor(this.#settings.world.now()) };
    const asked = worthAsking(facts);
    const present = asked.length === 0 ? undefined : await connection.present(asked);
    const at = this.#settings.world.now();
    if (!outageGuard.silenceCounts(at)) {
      this.#missing = new Map();
      return 0;
    }
    const late = await this.#lookAgain(at);
    const { dead, missing } = judge(this.#missing, { ...facts, at, redisNow, leaseMs, present });
    this.#missing = missing;
    const chosen =
      dead.length <= AT_ONCE ? dead : dead.toSorted(() => this.#settings.world.random() - 0.5).slice(0, AT_ONCE);
    return late + (await Promise.all(chosen.map((one) => this.#bury(one)))).filter(Boolean).length;
  }

  #due(now: number): readonly Buried[] {
    return this.#buried.filter(({ looks: [next = Infinity] }) => next <= now);
  }

  /** @returns how many of the buried had taken more meanwhile */
  async #lookAgain(now: number): Promise<number> {
    const due = this.#due(now);
    if (due.length === 0) return 0;
    const { redis, onBuried, log } = this.#settings;
    const found = await Promise.all(
      due.map(async ({ worker, lanes }) => {
        const left = (await ownedByLane(redis, worker, lanes)).filter(({ entries }) => entries > 0);
        if (left.length === 0) return false;
        const opened = left.map(({ lane }) => lane);
        if (!(await bury(redis, worker, { why: "stray" }, opened))) return false;
        onBuried(opened);
        log.warn({ worker, steps: stepsIn(left) }, "a worker took steps after it was declared dead; they are free");
        return true;
      }),
    );
    this.#buried = this.#buried
      .map((one) => (due.includes(one) ? { ...one, looks: one.looks.slice(1) } : one))
      .filter(({ looks }) => looks.length > 0);
    return found.filter(Boolean).length;
  }

  /** @returns whether it was this worker that did it */
  async #bury({ worker, aliveUntil }: Silent): Promise<boolean> {
    const { redis, buckets, onBuried, log } = this.#settings;
    const served = await announcedLanes(redis, worker, buckets);
    const left = await ownedByLane(redis, worker, served);
    const lanes: Lane[] = left.map(({ lane }) => lane);
    if (!(await bury(redis, worker, { why: "silent", aliveUntil }, lanes))) return false;
    onBuried(lanes);
    log.info({ worker, steps: stepsIn(left) }, "a worker is gone; its steps are free");
    const now = this.#settings.world.now();
    this.#buried = [...this.#buried, { worker, lanes: served, looks: AGAIN_MS.map((ms) => now + ms) }];
    return true;
  }
}

function stepsIn(left: readonly OwnedInLane[]): number {
  return left.reduce((sum, { entries }) => sum + entries, 0);
}
