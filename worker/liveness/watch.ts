/**
 * Watches over the other workers: looks at silent workers again, and buries dead workers, so that
 * other workers can take over their entries.
 */
import type { Logger } from "pino";
import type { Lane } from "#shared/queue/address.js";
import { announcedLanes } from "#shared/queue/work/liveness/announced-lanes.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import type { Silent } from "#shared/queue/work/liveness/heartbeat.js";
import { ownedByLane, type OwnedInLane } from "#shared/queue/work/read/owned.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { OwnConnection } from "#shared/redis/own-connection.js";
import type { World } from "#shared/world.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import type { LivenessCounts } from "./counts.js";
import { judge, worthAsking, type Missing } from "./judge.js";

export interface WatchSettings {
  readonly redis: RedisClient;
  readonly connection: Pick<OwnConnection, "name" | "upFor" | "present">;
  readonly outageGuard: OutageGuard;
  /** This worker's name. The watch leaves this worker out. */
  readonly worker: string;
  readonly leaseMs: number;
  /** Lanes of each model version. */
  readonly buckets: number;
  readonly world: World;
  readonly counts: LivenessCounts;
  /** Called with the lanes in which a buried worker has left entries. */
  readonly onBuried: (lanes: readonly Lane[]) => void;
  readonly log: Logger;
}

/**
 * Most burials after one look. If many workers die at once, each watcher buries a random choice of
 * them, so that the watchers share the work.
 */
const AT_ONCE = 8;

/**
 * Delays after a burial at which the watch looks at the worker again, in ms. A worker that was
 * frozen during a read, or that woke once more before it learned of its burial, may have got
 * entries since. If that worker has died by now, no other process knows of these entries. If
 * entries come after the last look, the reconciler finds them.
 */
const AGAIN_MS = [1_000, 5_000, 20_000] as const;

/** A worker that this worker has buried, with the times of further looks. */
interface Buried {
  readonly worker: string;
  /** All lanes that the worker served. */
  readonly lanes: readonly Lane[];
  /** On `performance.now()`'s clock, the next look first. */
  readonly looks: readonly number[];
}

export class Watch {
  readonly #settings: WatchSettings;
  #missing: Missing = new Map();
  #buried: readonly Buried[] = [];

  constructor(settings: WatchSettings) {
    this.#settings = settings;
  }

  /** Whether the watch needs another look soon. */
  get isCurious(): boolean {
    return this.#missing.size > 0 || this.#due(this.#settings.world.now()).length > 0;
  }

  /**
   * Looks at the workers that a beat has named. Asks Redis for connections only while a worker is
   * silent.
   * @returns the number of burials
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

  /** @returns the number of buried workers that had taken more entries meanwhile */
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

  /**
   * @returns whether this worker did the burial; false if another worker came first or the worker
   *   lives
   */
  async #bury({ worker, aliveUntil }: Silent): Promise<boolean> {
    const { redis, buckets, leaseMs, counts, onBuried, log } = this.#settings;
    const served = await announcedLanes(redis, worker, buckets);
    const left = await ownedByLane(redis, worker, served);
    const lanes: Lane[] = left.map(({ lane }) => lane);
    if (!(await bury(redis, worker, { why: "silent", aliveUntil, leaseMs }, lanes))) return false;
    counts.buried("dead");
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
