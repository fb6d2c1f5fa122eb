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
        /** Hibernating sequences, by model; without the models of which Redis may not say so. */
        readonly hibernating: ReadonlyMap<string, number>;
        /** The models that this look was about. */
        readonly asked: ReadonlySet<string>;
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
  budgets: { every: 2, at: 1 },
};

/** Tenants whose budgets a round reads: each takes some commands for each of its limits. */
const TENANTS_A_ROUND = 8;

/**
 * @param round the number of this round, from 0: the first reads all
 * @param before as the round before returned it
 */
export async function lookBeside(asked: Asked, round: number, before: BesideQueue): Promise<BesideQueue> {
  const look = async <Value>(part: keyof BesideQueue, was: Value, read: () => Promise<Value>) =>
    isDue(part, round, asked, before) ? read().catch(() => undefined) : was;
  const { redis } = asked;
  const [buckets, webhooks, batches, servers, budgets] = await Promise.all([
    look("buckets", before.buckets, () => lookAtBuckets(asked)),
    look("webhooks", before.webhooks, () => lookAtWebhooks(redis)),
    look("batches", before.batches, () => countByStatus(redis)),
    look("servers", before.servers, () => readMemory(redis)),
    look("budgets", before.budgets, () => readBudgets(asked, before.budgets)),
  ]);
  return { buckets, webhooks, batches, servers, budgets };
}

function isDue(part: keyof BesideQueue, round: number, { models }: Asked, { buckets }: BesideQueue): boolean {
  if (round === 0 || round % turns[part].every === turns[part].at) return true;
  return part === "buckets" && buckets !== undefined && models.some((model) => !buckets.asked.has(model));
}

async function lookAtBuckets({ redis, buckets, away, models }: Asked): Promise<BesideQueue["buckets"]> {
  const asked = Array.from({ length: buckets }, (_, bucket) => bucket).filter((bucket) => !away.has(bucket));
  const { hibernating, ...counts } = await countBuckets(redis, asked, models);
  const known = models.flatMap((model, i) => {
    const count = hibernating[i];
    return count === undefined ? [] : [[model, count] as const];
  });
  return { ...counts, hibernating: new Map(known), asked: new Set(models) };
}

async function lookAtWebhooks(redis: RedisClient): Promise<BesideQueue["webhooks"]> {
  const { pending, oldestAt } = await lookAtPending(redis);
  if (oldestAt === undefined) return { pending, oldestMs: 0 };
  return { pending, oldestMs: Math.max(0, (await timeAt(redis, webhookKeys.pending)) - oldestAt) };
}

/** Some tenants in turn: those whose figures are the oldest. The others keep theirs. */
async function readBudgets(
  { tenants, budgetsOf }: Asked,
  before: BesideQueue["budgets"] = new Map(),
): Promise<BesideQueue["budgets"]> {
  if (budgetsOf === undefined) return undefined;
  const known = [...before.keys()].filter((tenant) => tenants.includes(tenant));
  const unknown = tenants.filter((tenant) => !before.has(tenant));
  const turn = [...unknown, ...known].slice(0, TENANTS_A_ROUND);
  // A tenant that cannot be read has no figures, and its turn is over.
  const found = await Promise.all(
    turn.map(async (tenant) => [tenant, await budgetsOf(tenant).catch(() => ({}))] as const),
  );
  const kept = known.filter((tenant) => !turn.includes(tenant));
  return new Map<string, UsedBudgets>([...kept.map((tenant) => [tenant, before.get(tenant) ?? {}] as const), ...found]);
}
