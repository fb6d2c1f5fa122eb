/**
 * The lanes of one model version in this worker, one lane for each bucket, from the first read to
 * the drain. `LaneWork` defines the work on the steps: batches of a tensor model, or streams of a
 * generator. Steps of all buckets share one `Holdings`, one batch and one cache of states.
 */
import type { Logger } from "pino";
import type { Bus } from "#shared/nats/connect.js";
import { requestName, type Lane } from "#shared/queue/address.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import { discard } from "#shared/queue/work/read/discard.js";
import { deliveryKey, type Delivery } from "#shared/queue/entry.js";
import { lanesOf, type Located, type ModelQueue } from "#shared/queue/work/lane.js";
import { noteBegun } from "#shared/queue/work/read/note-begun.js";
import { ownedByLane } from "#shared/queue/work/read/owned.js";
import { release } from "#shared/queue/work/read/release.js";
import { lanesByKey, readOwned, type Taken } from "#shared/queue/work/stream.js";
import type { RedisClocks } from "#shared/redis/clock.js";
import { isReplyError } from "#shared/redis/script.js";
import { callGroups } from "#shared/redis/slots.js";
import { retrying } from "#shared/retry.js";
import { passed } from "#shared/stages.js";
import { realWorld, type World } from "#shared/world.js";
import { States, type Sleeping } from "../sequence/states.js";
import { ModelCounts } from "./counts.js";
import type { ModelReport } from "./model-report.js";
import type { StepTraces } from "../trace/step-traces.js";
import { Holdings, hold, type Arrival, type Batching, type GoneWorker, type Held, type Intake } from "./holdings.js";
import type { OutageGuard } from "./outage-guard.js";
import type { Reading } from "./reading.js";
import { reconcileWhileOpen } from "./reconciler.js";
import type { ReplyPublisher } from "./publish.js";
import type { Settler } from "./settle.js";

export interface LaneSettings {
  readonly queue: ModelQueue;
  readonly bus: Bus;
  /** The worker's publisher, which all lanes share. */
  readonly replies: ReplyPublisher;
  readonly clocks: RedisClocks;
  /**
   * How long a sequence of this model may go without a step, in ms; undefined for a model without
   * sequences.
   */
  readonly maxIdleMs: number | undefined;
  /** How many checkpoints to keep of a sequence, the newest included; undefined stands for one. */
  readonly history?: number | undefined;
  /** Whether a model with sequences also takes requests that are no steps; absent: no. */
  readonly takesBoth?: boolean;
  /** How many batches of the model run side by side; absent: one. */
  readonly instances?: number | undefined;
  /** All lanes of this process share one guard. */
  readonly outageGuard: OutageGuard;
  /** How many models this worker serves. */
  readonly models: number;
  /** The number of workers in the fleet, as far as this worker knows. */
  readonly living: () => number;
  /** Memory for the states of recent sequences, in bytes. */
  readonly stateCacheBytes: number;
  /** States that lie on disk; absent if the deployment keeps no states on disk. */
  readonly sleeping?: Sleeping;
  /** Gets a notification when there may be room for more steps. */
  readonly room: Reading["room"];
  readonly world?: World;
  /** Absent if the worker makes no traces. */
  readonly traces?: StepTraces | undefined;
  readonly log: Logger;
}

/** The parts that a model's lanes and their work share. */
export interface LaneContext {
  readonly queue: ModelQueue;
  readonly holdings: Holdings;
  readonly settler: Settler;
  /** The figures of this model version. */
  readonly counts: ModelCounts;
  readonly clocks: RedisClocks;
  readonly outageGuard: OutageGuard;
  readonly models: number;
  /** The number of workers in the fleet, as far as this worker knows. */
  readonly living: () => number;
  readonly maxIdleMs: number | undefined;
  readonly takesBoth: boolean;
  readonly world: World;
  /** Undefined if the worker makes no traces. */
  readonly traces: StepTraces | undefined;
  readonly log: Logger;
}

/**
 * The work on the steps of a model's lanes. The work takes the steps from its context's holdings.
 */
export interface LaneWork {
  /** How requests share batches. */
  readonly batching: Batching;
  /** How many more new steps the reader may read now. */
  room(): number;
  /** How many more suspects this worker may take over now. Other workers take the rest. */
  suspectRoom(): number;
  /** Whether this model takes deliveries of this kind. */
  accepts(delivery: Delivery): boolean;
  /**
   * Runs and settles held steps until `signal` aborts. A step that has not begun by then, or that
   * another worker can continue, stays in the holdings.
   */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * How long a commit retries, in ms. The budget is longer than a usual lease, because no worker
 * takes over entries while Redis is away.
 */
const SETTLE_BUDGET_MS = 20_000;
/** In ms. A call that succeeds in a Cluster mostly takes much less time. */
const CLUSTER_PATIENCE_MS = 500;
/**
 * How long a release retries, in ms. After that, other workers take the steps when this one ends.
 */
const RELEASE_BUDGET_MS = 5_000;
/** Most entries that a drain looks for at its end. This worker may own entries without knowing. */
const OWNED_LIMIT = 1_000;

/** Makes the shared parts of a model's lanes, without connecting. */
export function laneContext(settings: LaneSettings): LaneContext {
  const { queue, bus, replies, clocks, maxIdleMs, history, outageGuard, models, living, traces, log } = settings;
  const { instances, takesBoth = false, world = realWorld } = settings;
  const { model, version, streams } = queue;
  const hasStates = maxIdleMs !== undefined;
  const counts = new ModelCounts({ model, version, streams, sequences: hasStates, instances });
  const states = new States(queue, settings.stateCacheBytes, settings.sleeping, world, counts);
  const holdings = new Holdings(settings.room, world, {
    holds: (jobs) => counts.report.holds(jobs),
    gone: (delivery) => traces?.left(delivery),
  });
  if (hasStates) counts.show("baton_state_cache_bytes", () => states.cachedBytes);
  counts.report.caches(() => states.cachedBytes);
  for (const stage of ["waiting", "suspect", "running"] as const)
    counts.show("baton_held_requests", () => holdings.countAt(stage), { stage });
  const patienceMs = queue.redis.isCluster ? CLUSTER_PATIENCE_MS : SETTLE_BUDGET_MS;
  const budgets = { budgetMs: SETTLE_BUDGET_MS, patienceMs };
  return {
    queue,
    holdings,
    settler: { queue, bus, replies, states, counts, maxIdleMs, history, ...budgets, world, traces },
    counts,
    clocks,
    outageGuard,
    models,
    living,
    maxIdleMs,
    takesBoth,
    world,
    traces,
    log,
  };
}

/** The open lanes of a model. Their loops run until the drain. */
export class RunningLane implements Intake {
  readonly #context: LaneContext;
  readonly #work: LaneWork;
  readonly #reader: Reading;
  /** Aborts when the lanes take no more steps. */
  readonly #reading = new AbortController();
  readonly #reconciling: Promise<void>;
  readonly #running: Promise<void>;

  /**
   * Starts the loops.
   * @param reader reads for all models of this worker
   */
  constructor(context: LaneContext, work: LaneWork, reader: Reading) {
    this.#context = context;
    this.#work = work;
    this.#reader = reader;
    const reading = this.#reading.signal;
    const lanes = lanesOf(context.queue);
    reader.add({ lanes: lanesByKey(lanes), laneCount: lanes.length, intake: this });
    this.#reconciling = reconcileWhileOpen(context, reading);
    this.#running = work.run(reading);
  }

  get queue(): ModelQueue {
    return this.#context.queue;
  }

  get holdings(): Holdings {
    return this.#context.holdings;
  }

  get report(): ModelReport {
    return this.#context.counts.report;
  }

  /** Takes in steps that a takeover has found for these lanes. */
  get intake(): Intake {
    return this;
  }

  room(): number {
    return this.#work.room();
  }

  suspectRoom(): number {
    return this.#work.suspectRoom();
  }

  doubt(): void {
    this.#reader.doubt();
  }

  /** Takes new deliveries into the holdings, and sets unreadable entries aside. */
  accept({ deliveries, unreadable }: Taken, arrival: Arrival, from?: GoneWorker): void {
    const { holdings, counts, traces } = this.#context;
    const unseen = deliveries.filter(({ key }) => !holdings.has(key));
    passed("taken", unseen, requestName);
    if (from !== undefined) {
      traces?.takenOver(unseen, from);
      counts.takenOver(unseen, from.seenAt);
    }
    holdings.hold(this.#parse(unseen), arrival);
    this.#noteBegun(unseen.filter(({ tellsBegin }) => tellsBegin));
    if (unreadable.length > 0) this.#setAside(unreadable);
  }

  /** Stops reading, hands back the steps that have not begun, and finishes and commits the rest. */
  async drain(): Promise<void> {
    const { queue, holdings, log } = this.#context;
    this.#reading.abort();
    holdings.arrived.notify();
    holdings.taken.notify();
    let released = await this.#handBack();
    if (queue.streams === true) {
      await this.#running;
      await this.#leaveStreams();
    }
    // Redis may still give entries to a blocked read. The worker lets the read end by itself, and
    // hands its entries back before waiting for a long run.
    await Promise.all([this.#reconciling, this.#reader.stop()]);
    released += await this.#handBack();
    await this.#running;
    // After a lost reply, this worker owns entries that it has not seen.
    if (queue.streams === true) await this.#leaveStreams();
    else released += await this.#releaseUnseen();
    if (released > 0) log.info({ count: released }, "handed back");
  }

  /**
   * Parses deliveries, and begins to look up the states of all of them together. A delivery that
   * this model cannot take is set aside.
   */
  #parse(deliveries: readonly Delivery[]): Held[] {
    const { settler, clocks, world } = this.#context;
    const lookups = settler.states.lookUp(deliveries);
    return deliveries.flatMap((delivery, i) => {
      const state = lookups[i];
      if (state === undefined) return [];
      try {
        // The model under this name may have changed. Its scripts and its other steps would misread
        // this step.
        if (!this.#work.accepts(delivery)) throw new TypeError("not of this kind");
        const deadlineAt = clocks.of(bucketTag(delivery.bucket)).toLocal(delivery.deadlineAt);
        return [hold(delivery, deadlineAt, this.#work.batching, state, world)];
      } catch {
        this.#setAside([delivery]);
        return [];
      }
    });
  }

  /** If this call fails, the script that ends the request notes the begin. */
  #noteBegun(deliveries: readonly Delivery[]): void {
    const { queue, log } = this.#context;
    if (deliveries.length === 0) return;
    noteBegun(queue, deliveries).catch((error: unknown) => {
      log.debug({ error: String(error) }, "that jobs have begun cannot be noted now");
    });
  }

  #setAside(entries: readonly Located[]): void {
    const { queue, holdings, counts, world, log } = this.#context;
    log.error({ entries: entries.map(({ entry }) => entry) }, "unreadable entries set aside");
    discard(queue, entries).then(
      () => counts.setAside(entries.length),
      (error: unknown) => {
        log.warn({ error: String(error) }, "discard failed; it will be tried again");
        const left = entries.map(({ lane, entry }) => ({ lane, entry, key: deliveryKey(lane, entry) }));
        holdings.leave(left, world.now());
      },
    );
  }

  /** @returns how many steps that had not begun went back to the queue */
  #handBack(): Promise<number> {
    const { queue, holdings, world } = this.#context;
    // A stream that may have begun goes on elsewhere from its log.
    const held = queue.streams === true ? holdings.waiting.filter(isNew) : [...holdings.waiting, ...holdings.suspects];
    const unbegun = held.map(({ delivery }) => delivery);
    holdings.drop(unbegun.map(({ key }) => key));
    return retrying(() => release(queue, unbegun), { budgetMs: RELEASE_BUDGET_MS, world });
  }

  /**
   * Leaves unfinished streams to other workers at once. A stream must not go to the end of the
   * queue: the next worker that finds the grave continues the stream.
   */
  #leaveStreams(): Promise<unknown> {
    const { queue, holdings, world } = this.#context;
    holdings.drop(holdings.keys());
    const leave = async () => {
      const owned = await ownedByLane(queue.redis, queue.consumer, lanesOf(queue));
      const lanes = owned.map(({ lane }) => lane);
      if (lanes.length > 0) await bury(queue.redis, queue.consumer, { why: "leaving" }, lanes);
    };
    return retrying(leave, { budgetMs: RELEASE_BUDGET_MS, world });
  }

  /** @returns how many steps went back that Redis had given this worker without its knowledge */
  async #releaseUnseen(): Promise<number> {
    const { queue, world } = this.#context;
    const budget = { budgetMs: RELEASE_BUDGET_MS, world };
    const read = async (lanes: readonly Lane[]) => {
      try {
        return (await readOwned(queue.redis, queue.consumer, lanesByKey(lanes), OWNED_LIMIT)).deliveries;
      } catch (error) {
        if (isReplyError(error, "NOGROUP")) return []; // Redis came back empty
        throw error;
      }
    };
    // In a Cluster, one read may name only streams of one slot.
    const groups = callGroups(queue.redis, lanesOf(queue), ({ bucket }) => bucketTag(bucket));
    const released = groups.map(async (lanes) => {
      const deliveries = await retrying(() => read(lanes), budget);
      return retrying(() => release(queue, deliveries), budget);
    });
    return (await Promise.all(released)).reduce((sum, count) => sum + count, 0);
  }
}

function isNew({ before }: Held): boolean {
  return before.runs === 0;
}
