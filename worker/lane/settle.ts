/**
 * Commits settlements, then publishes what took effect. In that order, a client never sees an
 * outcome that is not in Redis.
 */
import type { Bus } from "#shared/nats/connect.js";
import { retrying } from "#shared/retry.js";
import type { World } from "#shared/world.js";
import { isReplyError } from "#shared/redis/script.js";
import { callGroups } from "#shared/redis/slots.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import type { Publication, ReplyPublisher } from "./publish.js";
import { commit } from "#shared/queue/work/commit.js";
import type { Fate, Settlement } from "#shared/queue/work/settlement.js";
import type { ModelQueue } from "#shared/queue/work/lane.js";
import type { Checkpoint } from "#shared/contract/checkpoint.js";
import type { States } from "../sequence/states.js";

/** How a step ended, as it is to be committed. */
export interface Settled extends Settlement {
  /**
   * The state after the step, to be kept in this worker's memory; undefined where there is none.
   */
  readonly checkpoint: Checkpoint | undefined;
}

/** What settling needs, made once for a model. */
export interface Settler {
  readonly queue: ModelQueue;
  /** For the records of streams. */
  readonly bus: Bus;
  readonly replies: ReplyPublisher;
  readonly states: States;
  /** How long a sequence is kept without a step; undefined for a model without sequences. */
  readonly maxIdleMs: number | undefined;
  /** How many checkpoints of a sequence are kept, the newest included; undefined stands for one. */
  readonly history?: number | undefined;
  /**
   * How long a commit is retried while Redis is away. Once others have taken the entries over it
   * is refused, which does no harm.
   */
  readonly budgetMs: number;
  /**
   * How long the work of all buckets waits for a call that is about one. In a Cluster the master of
   * that bucket may be away while the others are there.
   */
  readonly patienceMs: number;
  readonly world: World;
}

/** How many steps met each fate. */
export type Fates = Readonly<Record<Fate, number>>;

/**
 * Divides steps so that each group can be settled by itself. In a Cluster those of one bucket do
 * not wait for those of another, whose master may be away.
 */
export function settledTogether({ queue }: Settler, settled: readonly Settled[]): Settled[][] {
  return callGroups(queue.redis, settled, ({ delivery }) => bucketTag(delivery.bucket));
}

/**
 * @returns how many steps met which fate
 * @throws the Redis error when the budget is spent
 */
export async function settle(settler: Settler, settled: readonly Settled[]): Promise<Fates> {
  const { queue, replies } = settler;
  const counts = { committed: 0, superseded: 0, already: 0, lost: 0 };
  if (settled.length === 0) return counts;
  // Gateways read how streams end from their logs, and wait for no outcome.
  const awaited = queue.streams === true ? [] : settled.map(({ delivery }) => delivery);
  await replies.begin(awaited);
  // When the budget is spent, the last call may have taken effect all the same: gateways look.
  let publications: Publication[] = awaited.map((delivery) => ({ delivery, outcome: undefined }));
  try {
    const fates = await commitAndRemember(settler, settled);
    for (const fate of fates) counts[fate]++;
    if (awaited.length > 0) publications = publicationsOf(settled, fates);
  } finally {
    replies.end(awaited, publications);
  }
  return counts;
}

async function commitAndRemember(settler: Settler, settled: readonly Settled[]): Promise<Fate[]> {
  const { queue, states, maxIdleMs, history, budgetMs, world } = settler;
  const committing = retrying(() => commit(queue, settled, maxIdleMs, history), { budgetMs, world }).catch(
    (error: unknown) => {
      // Redis came back empty: the lane's stream is gone, and there is nothing left to settle.
      if (isReplyError(error, "NOGROUP")) return settled.map((): Fate => "lost");
      throw error;
    },
  );
  // The next step of a sequence may reach this worker before the reply to the commit does. So
  // states are remembered now; one whose commit is refused is never asked for.
  for (const { delivery, checkpoint } of settled) {
    if (checkpoint !== undefined && delivery.sequence !== undefined) states.remember(delivery.sequence, checkpoint);
  }
  return committing;
}

/**
 * What gateways are told. Where another outcome was there already, perhaps this very one after a
 * lost reply, they look.
 */
function publicationsOf(settled: readonly Settled[], fates: readonly Fate[]): Publication[] {
  return settled.flatMap(({ delivery, outcome }, i) => {
    if (fates[i] === "lost") return [];
    return { delivery, outcome: fates[i] === "committed" ? outcome : undefined };
  });
}
