/** One model version's lane in this worker, from its first read to its drain. What is done with the steps is the lane's work: batches of a tensor model, or streams of a generator. */
import type { Logger } from "pino";
import type { Delivery } from "#shared/contract/entry.js";
import { decodeCorrelationId, startRequiredMessage } from "#shared/contract/sequence.js";
import { InferenceError } from "#shared/errors.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RedisClock } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { Connections } from "#shared/redis/connections.js";
import { retrying } from "#shared/retry.js";
import type { Settler } from "./batch/settle.js";
import { Hand, hold, type Held } from "./intake/hand.js";
import { keepLeases } from "./intake/lease.js";
import { readWhileOpen } from "./intake/reader.js";
import { reclaimWhileOpen } from "./intake/reclaimer.js";
import { reconcileWhileOpen } from "./intake/reconciler.js";
import { Steadiness } from "./intake/steadiness.js";
import { Watcher } from "./intake/watcher.js";
import { abandon } from "./queue/abandon.js";
import { discard } from "./queue/discard.js";
import type { LaneQueue } from "./queue/lane.js";
import { release } from "./queue/release.js";
import { ensureGroup, readOwned, type Taken } from "./queue/stream.js";
import { States } from "./sequence/states.js";

export interface LaneSettings {
  readonly queue: LaneQueue;
  /** A connection for this lane's blocking reads alone. */
  readonly reader: RedisClient;
  readonly work: LaneWork;
  readonly bus: Bus;
  readonly clock: RedisClock;
  readonly connections: Connections;
  readonly leaseMs: number;
  readonly stateCacheBytes: number;
  readonly log: Logger;
}

export interface LaneParts {
  readonly hand: Hand;
  readonly settler: Settler;
  readonly clock: RedisClock;
  readonly steadiness: Steadiness;
  readonly log: Logger;
}

export interface LaneWork {
  readonly model: string;
  /** Whether requests have a batch dimension. */
  readonly batched: boolean;
  /** Of its sequences; undefined when it has none. */
  readonly maxIdleMs: number | undefined;
  /** How many more suspects may be taken over now; the rest is left to other workers. */
  suspectRoom(hand: Hand): number;
  /** Whether a delivery is of the kind that this model takes. */
  accepts(delivery: Delivery): boolean;
  /** How many more steps may be read now. */
  room(hand: Hand): number;
  /** Runs and settles what comes into the hand, until `signal` aborts; what has not begun, or can be handed on, is left in the hand. */
  run(parts: LaneParts, signal: AbortSignal): Promise<void>;
}

export interface RunningLane {
  /** Stops reading, hands back what has not begun, finishes and commits what has. */
  drain(): Promise<void>;
}

/** A commit is worth retrying for longer than any lease: reclaiming pauses while Redis is away. */
const SETTLE_BUDGET_MS = 20_000;
const RELEASE_BUDGET_MS = 5_000;

export async function openLane(settings: LaneSettings): Promise<RunningLane> {
  const { queue, reader, work, bus, clock, leaseMs, log } = settings;
  const hand = new Hand();
  const states = new States(queue, settings.stateCacheBytes, startRequired(work.model));
  const steadiness = new Steadiness(leaseMs, performance.now());
  const reading = new AbortController();
  const keeping = new AbortController();

  const admit = (how: "fresh" | "suspect") => {
    return ({ deliveries, unreadable }: Taken) => {
      const unseen = deliveries.filter(({ entry }) => !hand.has(entry));
      hand.hold(holdAll(unseen), how);
      if (unreadable.length > 0) setAside(unreadable);
    };
  };
  const holdAll = (deliveries: readonly Delivery[]): Held[] => {
    const found = states.find(deliveries);
    return deliveries.flatMap((delivery, i) => {
      const state = found[i];
      if (state === undefined) return [];
      try {
        // A model that was changed under its name: its scripts and its other steps would take this one for what it is not.
        if (!work.accepts(delivery)) throw new TypeError("not of this kind");
        return [hold(delivery, clock.toLocal(delivery.deadlineAt), work.batched, state)];
      } catch {
        setAside([delivery.entry]);
        return [];
      }
    });
  };
  const setAside = (entries: readonly string[]) => {
    log.error({ entries }, "unreadable entries set aside");
    discard(queue, entries).catch((error: unknown) =>
      log.warn({ error: String(error) }, "discard failed; it will be tried again"),
    );
  };

  await ensureGroup(queue.redis, queue.lane);
  const settler: Settler = { queue, bus, states, maxIdleMs: work.maxIdleMs, budgetMs: SETTLE_BUDGET_MS };
  const intake = Promise.all([
    readWhileOpen(
      {
        queue: { ...queue, redis: reader },
        hand,
        room: () => work.room(hand),
        accept: admit("fresh"),
        acceptOwned: admit("suspect"),
        log,
      },
      reading.signal,
    ),
    reclaimWhileOpen(
      {
        queue,
        hand,
        clock,
        leaseMs,
        steadiness,
        room: () => work.suspectRoom(hand),
        accept: admit("suspect"),
        watcher: new Watcher({ queue, connections: settings.connections, leaseMs, log }),
        log,
      },
      reading.signal,
    ),
    reconcileWhileOpen(queue, log, reading.signal),
  ]);
  const running = work.run({ hand, settler, clock, steadiness, log }, reading.signal);
  const leases = keepLeases({ queue, hand, clock, leaseMs, steadiness, log }, keeping.signal);

  return {
    async drain() {
      reading.abort();
      hand.arrived.notify();
      hand.taken.notify();
      const budget = { budgetMs: RELEASE_BUDGET_MS };
      const handBack = () => {
        const unbegun = [...hand.waiting, ...hand.suspects].map(({ delivery }) => delivery);
        hand.drop(unbegun.map(({ entry }) => entry));
        return retrying(() => release(queue, unbegun), budget);
      };
      // A running stream must not go to the end of the queue: its lease ends now, and the next worker that scans goes on with it.
      const leaveStreams = () => {
        hand.drop(hand.entries());
        return retrying(() => abandon(queue), budget);
      };
      let released = await handBack();
      if (queue.streams === true) await running.then(leaveStreams);
      // A reader that Redis still holds blocked may be given more: it is read out, not cut off, and handed back before a long run ends.
      await intake;
      reader.disconnect();
      released += await handBack();
      await running;
      // What a read would have brought had its reply not been lost is ours too.
      if (queue.streams === true) await leaveStreams();
      else {
        const { deliveries } = await retrying(() => readOwned(queue, 1_000), budget);
        released += await retrying(() => release(queue, deliveries), budget);
      }
      keeping.abort();
      await leases;
      if (released > 0) log.info({ count: released }, "handed back");
    },
  };
}

function startRequired(model: string): (delivery: Delivery) => InferenceError {
  return ({ sequence = "" }) => {
    const id = decodeCorrelationId(sequence.slice(sequence.indexOf(":") + 1));
    return new InferenceError("sequence_start_required", startRequiredMessage(model, id));
  };
}
