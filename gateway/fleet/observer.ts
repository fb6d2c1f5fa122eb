/**
 * The observer of the fleet. Every gateway may observe, and one at a time does: it renews its turn
 * every five seconds, looks at the queue and at the reports of all workers, shows the figures of
 * the fleet on its page of metrics, and appends a point to the history. If it dies, the turn is
 * free after fifteen seconds at most, and another gateway waits for just this moment.
 */
import type { Logger } from "pino";
import type { Cells } from "#shared/metrics/cells.js";
import { appendPoint, endTurn, STEP_MS, takeTurn, TURN_MS } from "#shared/queue/admission/history.js";
import type { LaneLook } from "#shared/queue/admission/look-at-lane.js";
import type { QueueLimits } from "#shared/queue/admission/limits.js";
import { renewTurn } from "#shared/queue/admission/renew-turn.js";
import { readProcesses } from "#shared/queue/processes/note-process.js";
import type { ReportPart } from "#shared/queue/pieces/report.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import { lookBeside, type Asked, type BesideQueue } from "./beside-queue.js";
import { EndCounters } from "./ended-jobs.js";
import { sequenceModels, show, versionsOf, type Observed } from "./observed.js";
import { pointOf, type SumsAt } from "./point.js";
import { lookAtQueue } from "./queue-look.js";
import { SumsReader } from "./sums-reader.js";
import type { FleetWatch } from "./watch.js";

/** How long after a turn has ended a gateway tries to take it, in ms. */
const AFTER_MS = 10;
/** One of so many rounds reads the list of processes, which changes rarely. */
const ROUNDS_PER_LIST = 6;
/** A point for a longer time says nothing of the work since the point before, in ms. */
const LONGEST_STEP_MS = 2 * STEP_MS;

export interface ObserverSettings {
  readonly redis: RedisClient;
  /** The name of this gateway. */
  readonly gateway: string;
  readonly buckets: number;
  readonly limits: QueueLimits;
  readonly fleet: Pick<FleetWatch, "workers" | "lapsed" | "unserved" | "version">;
  readonly cells: Cells;
  readonly budgetsOf?: Asked["budgetsOf"];
  readonly world?: World;
  readonly log: Logger;
}

export class Observer {
  readonly #settings: ObserverSettings;
  readonly #world: World;
  /** When this gateway last renewed its turn, on `World.now()`'s clock; undefined without one. */
  #renewedAt: number | undefined;
  #round = 0;
  readonly #lanes = new Map<string, LaneLook>();
  /** The sums of the round before in this turn. */
  #before: SumsAt | undefined;
  readonly #sums: SumsReader;
  #beside: BesideQueue = {};
  readonly #ends = new EndCounters();
  #processes: Observed["processes"] = { gateway: 0, jobs: 0 };

  constructor(settings: ObserverSettings) {
    this.#settings = settings;
    this.#world = settings.world ?? realWorld;
    this.#sums = new SumsReader(settings.redis);
  }

  /** Observes in turn with other gateways until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    const { redis, log } = this.#settings;
    while (!signal.aborted) {
      const startedAt = this.#world.now();
      let waitMs = STEP_MS;
      try {
        waitMs = await this.#turn();
      } catch (error) {
        dropIfSilent(redis, error);
        log.debug({ error: String(error) }, "the fleet could not be observed; the next round tries again");
        if (this.#renewedAt !== undefined && this.#world.now() - this.#renewedAt >= TURN_MS) this.#step(undefined);
      }
      await delay(Math.max(AFTER_MS, startedAt + waitMs - this.#world.now()), signal, this.#world);
    }
    const hadTurn = this.#renewedAt !== undefined;
    this.#step(undefined);
    if (hadTurn) await endTurn(redis).catch(() => undefined);
  }

  /** @returns the time from the begin of this turn to the next, in ms */
  async #turn(): Promise<number> {
    const { redis, gateway } = this.#settings;
    const now = this.#world.now();
    // After a longer pause another gateway may have the turn, which a renewal would take away.
    const mayHave = this.#renewedAt !== undefined && now - this.#renewedAt < TURN_MS;
    const reports = mayHave ? await renewTurn(redis, gateway) : undefined;
    if (reports === undefined) {
      this.#step(undefined);
      const freeMs = await takeTurn(redis, gateway);
      if (freeMs !== undefined) return Math.min(STEP_MS, freeMs + AFTER_MS);
    }
    this.#step(now);
    await this.#observe(reports);
    return STEP_MS;
  }

  /** @param renewedAt undefined if this gateway has no turn, or no longer */
  #step(renewedAt: number | undefined): void {
    if (renewedAt === undefined && this.#renewedAt !== undefined) {
      show(this.#settings.cells, undefined);
      this.#before = undefined;
      this.#sums.forget();
      this.#beside = {};
      this.#lanes.clear();
      this.#round = 0;
    }
    this.#renewedAt = renewedAt;
  }

  /** @param reports as the renewed turn brought them; undefined in the first round of a turn */
  async #observe(reports: readonly ReportPart[] | undefined): Promise<void> {
    const { redis, buckets, limits, fleet, cells, budgetsOf } = this.#settings;
    const round = this.#round++;
    const { workers, lapsed, unserved } = fleet;
    const away = new Set(unserved.flatMap((one) => one.buckets));
    // The processes of a fleet that starts join within the first rounds.
    if (round === 1 || round % ROUNDS_PER_LIST === 0) await this.#countProcesses();
    const look = await lookAtQueue({
      redis,
      buckets,
      away,
      workers: [...workers, ...lapsed],
      round,
      known: this.#lanes,
    });
    const models = sequenceModels(workers, lapsed).filter((model) => (look.loads.get(`s:${model}`)?.requests ?? 0) > 0);
    const asked = { redis, buckets, away, models, tenants: cells.tenants, budgetsOf };
    this.#beside = await lookBeside(asked, round, this.#beside);
    const { parts, sums } = await this.#sums.read(reports, fleet.version);
    const known = new Set(versionsOf(workers, lapsed).map(({ name }) => name));
    const seen: Observed = {
      look,
      ended: away.size > 0 ? undefined : this.#ends.take(look.loads, known),
      jobsHeld: jobsHeldBy(workers, parts),
      workers,
      lapsed,
      unservedBuckets: away.size,
      limits,
      processes: this.#processes,
      beside: this.#beside,
    };
    show(cells, seen);
    const now = { sums, at: this.#world.now() };
    // After rounds that failed, the sums since the last one are no work of one step.
    const before = now.at - (this.#before?.at ?? -Infinity) < LONGEST_STEP_MS ? this.#before : undefined;
    this.#before = now;
    await appendPoint(redis, pointOf(seen, before, now));
  }

  async #countProcesses(): Promise<void> {
    const listed = await readProcesses(this.#settings.redis);
    const count = (wanted: "gateway" | "jobs") => listed.filter(({ kind }) => kind === wanted).length;
    this.#processes = { gateway: count("gateway"), jobs: count("jobs") };
  }
}

/** A report of a worker that may come back is there for ten minutes, but others have its jobs. */
function jobsHeldBy(workers: Observed["workers"], reports: readonly ReportPart[]): number {
  const live = new Set(workers.map(({ worker }) => worker));
  const held = reports.filter(({ process, part }) => part.of === "jobs" && live.has(process ?? ""));
  return held.reduce((all, { sums }) => all + (sums[0] ?? 0), 0);
}
