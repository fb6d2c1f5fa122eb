/**
 * Takes entries over from the graves of workers that are gone, and takes back entries that this
 * worker had given up without an end. All of these entries are suspects, because any of these
 * requests may have ended a worker.
 */
import type { Logger } from "pino";
import { graveText, type DatedGrave } from "#shared/queue/work/liveness/graves.js";
import { laneKeys, registryKeys } from "#shared/queue/keys.js";
import type { Lane } from "#shared/queue/address.js";
import { byLane, inLane, lanesOf, type ModelQueue } from "#shared/queue/work/lane.js";
import { takeBack } from "#shared/queue/work/liveness/take-back.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import type { RedisClocks } from "#shared/redis/clock.js";
import { delay } from "#shared/retry.js";
import type { World } from "#shared/world.js";
import type { Holdings, Intake } from "../lane/holdings.js";
import type { ModelReport } from "../lane/model-report.js";

/** The parts of an open model that liveness needs. */
export interface HeldModel {
  readonly queue: ModelQueue;
  readonly holdings: Pick<Holdings, "size" | "has" | "unbegun" | "drop" | "leave" | "leftBy">;
  readonly intake: Pick<Intake, "suspectRoom" | "accept" | "doubt">;
  /** What the model counts for the statistics of the fleet; absent if nothing counts. */
  readonly report?: ModelReport;
}

export interface ReclaimerSettings {
  readonly clocks: RedisClocks;
  readonly leaseMs: number;
  readonly world: World;
  readonly log: Logger;
}

/** A lane that is open in this worker. */
interface OpenLane {
  readonly lane: Lane;
  readonly model: HeldModel;
}

/**
 * Fewest entries of one call. In a large fleet a worker's share of a grave is smaller, but such a
 * share is not worth a call.
 */
const FEWEST = 4;
/**
 * Random pause between two shares of one grave, in ms, so that other workers come to their shares.
 */
const PAUSE_MS = { least: 5, most: 20 };

export class Reclaimer {
  readonly #settings: ReclaimerSettings;
  /** By the key of the ready stream. */
  readonly #lanes = new Map<string, OpenLane>();
  readonly #models = new Set<HeldModel>();
  /** Calls under way, at most one per lane. */
  readonly #taking = new Map<string, Promise<void>>();

  constructor(settings: ReclaimerSettings) {
    this.#settings = settings;
  }

  get models(): Iterable<HeldModel> {
    return this.#models;
  }

  add(model: HeldModel): void {
    this.#models.add(model);
    for (const lane of lanesOf(model.queue)) this.#lanes.set(laneKeys(lane).ready, { lane, model });
  }

  /** Resolves when no call for the model is under way. */
  async remove(model: HeldModel): Promise<void> {
    this.#models.delete(model);
    const keys = lanesOf(model.queue).map((lane) => laneKeys(lane).ready);
    for (const ready of keys) this.#lanes.delete(ready);
    for (const ready of keys) await this.#taking.get(ready);
  }

  /** Whether this worker reads one of these ready streams. */
  serves(keys: readonly string[]): boolean {
    return keys.some((ready) => this.#lanes.has(ready));
  }

  /**
   * Begins to take entries from graves in this worker's lanes, as far as there is room.
   * @param living number of workers that share the graves
   */
  visit(graves: readonly DatedGrave[], living: number): void {
    const inLane = new Map<string, DatedGrave[]>();
    for (const grave of graves) {
      const others = inLane.get(grave.ready);
      if (others === undefined) inLane.set(grave.ready, [grave]);
      else others.push(grave);
    }
    for (const [ready, some] of inLane) {
      this.#take(ready, async (lane) => {
        for (const grave of some) await this.#empty(ready, lane, grave, living);
      });
    }
  }

  /**
   * Begins to take back the steps that this worker gave up at least a lease ago. By then the cause
   * may be gone.
   * @param all takes later steps back, too: this worker was cut off, and is back
   */
  takeBack(all: boolean): void {
    const now = this.#settings.world.now();
    for (const { queue, holdings, intake } of this.#models) {
      const left = holdings
        .leftBy(all ? now : now - this.#settings.leaseMs)
        .slice(0, Math.max(0, intake.suspectRoom()));
      for (const [lane, some] of byLane(left)) {
        this.#take(laneKeys(lane).ready, async () => {
          const owned = await takeBack(
            inLane(queue, lane),
            some.map(({ entry }) => entry),
          );
          holdings.drop(some.map(({ key }) => key).filter((key) => !holdings.has(key)));
          if (owned.deliveries.length > 0) this.#settings.log.info({ count: owned.deliveries.length }, "taken back");
          intake.accept(owned, "suspect");
        });
      }
    }
  }

  /**
   * Does nothing while another call for that lane is under way, because the next beat comes soon.
   */
  #take(ready: string, take: (lane: OpenLane) => Promise<void>): void {
    const lane = this.#lanes.get(ready);
    if (lane === undefined || this.#taking.has(ready)) return;
    const taking = take(lane)
      .catch((error: unknown) => {
        this.#settings.log.debug({ error: String(error) }, "it is not known what was taken over");
        lane.model.intake.doubt();
      })
      .finally(() => this.#taking.delete(ready));
    this.#taking.set(ready, taking);
  }

  async #empty(ready: string, { lane, model }: OpenLane, grave: DatedGrave, living: number): Promise<void> {
    const { clocks, leaseMs, world, log } = this.#settings;
    const { holdings, intake } = model;
    const queue = inLane(model.queue, lane);
    const until = world.now() + leaseMs;
    while (this.#lanes.has(ready) && world.now() < until) {
      const room = intake.suspectRoom();
      if (room > 0) {
        const share = Math.min(room, Math.max(FEWEST, Math.ceil(room / living)));
        const notAfter = clocks.of(ready).toRedis(world.now()) + leaseMs / 3;
        const found = await takeFrom(queue, grave.worker, share, notAfter);
        // A worker that returns after its burial may have taken its own entries again.
        const fresh = found.deliveries.filter(({ key }) => !holdings.has(key));
        if (found.deleted.length > 0) {
          log.error({ entries: found.deleted }, "pending entries were deleted from outside");
        }
        if (fresh.length > 0) log.info({ count: fresh.length }, "reclaimed");
        const { worker, seenAt } = grave;
        const from = { worker, seenAt: clocks.of(registryKeys.graves).toLocal(seenAt), times: found.times };
        intake.accept({ deliveries: fresh, unreadable: found.unreadable }, "suspect", from);
        if (found.said === "empty") await queue.redis.zrem(registryKeys.graves, graveText(grave));
        if (found.said !== "more") return;
      }
      const pauseMs = PAUSE_MS.least + world.random() * (PAUSE_MS.most - PAUSE_MS.least);
      await delay(pauseMs, undefined, world);
    }
  }
}
