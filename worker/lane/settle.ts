/**
 * Commits settlements, then publishes the outcomes that took effect. In that order, a client never
 * sees an outcome that is not in Redis.
 */
import type { Bus } from "#shared/nats/connect.js";
import { retrying } from "#shared/retry.js";
import { passed } from "#shared/stages.js";
import type { World } from "#shared/world.js";
import { isReplyError } from "#shared/redis/script.js";
import { callGroups } from "#shared/redis/slots.js";
import { requestName } from "#shared/queue/address.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import type { Generated, Measured, ModelCounts } from "./counts.js";
import type { Publication, ReplyPublisher } from "./publish.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import type { Fate, Settlement } from "#shared/queue/work/commit/settlement.js";
import type { ModelQueue } from "#shared/queue/work/lane.js";
import type { Checkpoint } from "#shared/contract/checkpoint.js";
import type { States } from "../sequence/states.js";
import type { StepTraces } from "../trace/step-traces.js";

/** How a step ended, ready for the commit. */
export interface Settled extends Settlement {
  /** The state after the step, for this worker's memory; undefined if the step leaves no state. */
  readonly checkpoint: Checkpoint | undefined;
  /** Undefined if no model ran the request, and for a stream. */
  readonly measured?: Measured | undefined;
  /** The run of a stream; undefined for other requests. */
  readonly generated?: Generated | undefined;
  /**
   * When a stream, or another request that failed, was admitted, on `World.now()`'s clock;
   * undefined if that is unknown.
   */
  readonly admittedAt?: number | undefined;
}

/** The means of settling, made once for a model. */
export interface Settler {
  readonly queue: ModelQueue;
  /** For the records of streams. */
  readonly bus: Bus;
  readonly replies: ReplyPublisher;
  readonly states: States;
  /** Absent if nobody counts. */
  readonly counts?: ModelCounts | undefined;
  /** How long a sequence may go without a step, in ms; undefined for a model without sequences. */
  readonly maxIdleMs: number | undefined;
  /** How many checkpoints to keep of a sequence, the newest included; undefined stands for one. */
  readonly history?: number | undefined;
  /**
   * How long a commit retries while Redis is away, in ms. A retry after a takeover does no harm,
   * because Redis refuses the commit.
   */
  readonly budgetMs: number;
  /**
   * How long the work of all buckets waits for a call about one bucket, in ms. In a Cluster, the
   * master of that bucket may be away while the other masters answer.
   */
  readonly patienceMs: number;
  readonly world: World;
  /** Absent if the worker makes no traces. */
  readonly traces?: StepTraces | undefined;
}

/** How many steps met each fate. */
export type Fates = Readonly<Record<Fate, number>>;

/**
 * Groups steps by the calls that settle them. In a Cluster, steps of one bucket do not wait for
 * another bucket, whose master may be away.
 */
export function settledTogether({ queue }: Settler, settled: readonly Settled[]): Settled[][] {
  return callGroups(queue.redis, settled, ({ delivery }) => bucketTag(delivery.bucket));
}

/**
 * @returns how many steps met each fate
 * @throws the Redis error when the budget is spent
 */
export async function settle(settler: Settler, settled: readonly Settled[]): Promise<Fates> {
  const { queue, replies, world } = settler;
  const counts = { committed: 0, superseded: 0, already: 0, lost: 0 };
  if (settled.length === 0) return counts;
  // Gateways read the ends of streams from their logs, and wait for no outcome.
  const awaited = queue.streams === true ? [] : settled.map(({ delivery }) => delivery);
  await replies.begin(awaited);
  // After a spent budget, the last call may still have taken effect, so gateways look into Redis.
  let publications: Publication[] = awaited.map((delivery) => ({ delivery, outcome: undefined }));
  try {
    passed("settled", settled, nameOf);
    const begunAt = world.now();
    const traced = settler.traces?.committing(settled);
    const fates = await commitAndRemember(settler, settled);
    settler.counts?.committed(settled, fates, begunAt, world.now());
    passed("committed", settled, nameOf);
    traced?.(fates);
    for (const fate of fates) counts[fate]++;
    if (awaited.length > 0) publications = publicationsOf(settled, fates);
  } finally {
    replies.end(awaited, publications);
  }
  return counts;
}

/** The name of a step's request. */
export function nameOf({ delivery }: Pick<Settled, "delivery">): string {
  return requestName(delivery);
}

async function commitAndRemember(settler: Settler, settled: readonly Settled[]): Promise<Fate[]> {
  const { queue, states, maxIdleMs, history, budgetMs, world } = settler;
  const committing = retrying(() => commit(queue, settled, maxIdleMs, history), { budgetMs, world }).catch(
    (error: unknown) => {
      // Redis came back empty: the lane's stream is gone, so there is nothing to settle.
      if (isReplyError(error, "NOGROUP")) return settled.map((): Fate => "lost");
      throw error;
    },
  );
  // The next step of a sequence may reach this worker before the reply to the commit. So the worker
  // remembers states now. No step asks for a state whose commit Redis refused.
  for (const { delivery, checkpoint } of settled) {
    if (checkpoint !== undefined && delivery.sequence !== undefined) states.remember(delivery.sequence, checkpoint);
  }
  return committing;
}

/**
 * The messages for the gateways. If Redis already had an outcome, perhaps this one after a lost
 * reply, the gateway looks into Redis.
 */
function publicationsOf(settled: readonly Settled[], fates: readonly Fate[]): Publication[] {
  return settled.flatMap(({ delivery, outcome }, i) => {
    if (fates[i] === "lost") return [];
    return { delivery, outcome: fates[i] === "committed" ? outcome : undefined };
  });
}
