/**
 * What the observer sees beside the queue: the states of sequences, requests set aside, the work of
 * the jobs processes, the memory of Redis, and what tenants have used. These figures change slowly,
 * so each round asks for some of them. A part that cannot be read leaves the page, because an old
 * figure would be a wrong one.
 */
import { countByStatus } from "#shared/queue/batches/batches.js";
import { countBuckets } from "#shared/queue/admission/count-buckets.js";
import { webhookKeys } from "#shared/queue/keys.js";
import { lookAtPending } from "#shared/queue/webhooks/look-at-pending.js";
import { timeAt } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { readMemory, type ServerMemory } from "#shared/redis/memory.js";

/** The part in use of each limit, by its name: 0 to 1, or more after a limit was lowered. */
export type UsedBudgets = Readonly<Record<string, number>>;

/** An absent member could not be read. */
export interface BesideQueue {
  readonly buckets?:
    | {
        /** Hibernating sequences, by model. */
        readonly hibernating: ReadonlyMap<string, number>;
        readonly dead: number;
        readonly events: number;
      }
    | undefined;
  readonly webhooks?: { readonly pending: number; readonly oldestMs: number } | undefined;
  /** Batches with work to do, by status. */
  readonly batches?: ReadonlyMap<string, number> | undefined;
  readonly servers?: readonly ServerMemory[] | undefined;
  /** By tenant. */
  readonly budgets?: ReadonlyMap<string, UsedBudgets> | undefined;
}

/** What the observer asks about in a round. */
export interface Asked {
  readonly redis: RedisClient;
  readonly buckets: number;
  /** Buckets that no server answers for now. */
  readonly away: ReadonlySet<number>;
  /** The models with live sequences. */
  readonly models: readonly string[];
  /** The tenants with a figure of their own. */
  readonly tenants: readonly string[];
  readonly budgetsOf: ((tenant: string) => Promise<UsedBudgets>) | undefined;
}

/** A part is read in one of so many rounds, in the round that it has there. */
const turns: Readonly<Record<keyof BesideQueue, { readonly every: number; readonly at: number }>> = {
  servers: { every: 2, at: 0 },
  buckets: { every: 6, at: 2 },
  webhooks: { every: 6, at: 3 },
  batches: { every: 6, at: 4 },
  budgets: { every: 6, at: 5 },
};

const reads: { readonly [Part in keyof BesideQueue]-?: (asked: Asked) => Promise<BesideQueue[Part]> } = {
  buckets: lookAtBuckets,
  webhooks: lookAtWebhooks,
  batches: ({ redis }) => countByStatus(redis),
  servers: ({ redis }) => readMemory(redis),
  budgets: readBudgets,
};

/**
 * @param round the number of this round, from 0: the first reads all
 * @param before as the round before returned it
 */
export async function lookBeside(asked: Asked, round: number, before: BesideQueue): Promise<BesideQueue> {
  const due = (Object.keys(turns) as (keyof BesideQueue)[]).filter(
    (part) => round === 0 || round % turns[part].every === turns[part].at,
  );
  const parts = await Promise.all(due.map(async (part) => [part, await reads[part](asked).catch(() => undefined)]));
  return { ...before, ...Object.fromEntries(parts) };
}

async function lookAtBuckets({ redis, buckets, away, models }: Asked): Promise<BesideQueue["buckets"]> {
  const asked = Array.from({ length: buckets }, (_, bucket) => bucket).filter((bucket) => !away.has(bucket));
  const { hibernating, ...counts } = await countBuckets(redis, asked, models);
  return { ...counts, hibernating: new Map(models.map((model, i) => [model, hibernating[i] ?? 0])) };
}

async function lookAtWebhooks({ redis }: Asked): Promise<BesideQueue["webhooks"]> {
  const { pending, oldestAt } = await lookAtPending(redis);
  if (oldestAt === undefined) return { pending, oldestMs: 0 };
  return { pending, oldestMs: Math.max(0, (await timeAt(redis, webhookKeys.pending)) - oldestAt) };
}

async function readBudgets({ tenants, budgetsOf }: Asked): Promise<BesideQueue["budgets"]> {
  if (budgetsOf === undefined) return undefined;
  return new Map(await Promise.all(tenants.map(async (tenant) => [tenant, await budgetsOf(tenant)] as const)));
}
