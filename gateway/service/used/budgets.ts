/** Which part of its limits a tenant has used, for the metrics of the fleet. */
import { readTaken } from "#shared/queue/admission/read-taken.js";
import { loadFieldOf, type Quota } from "#shared/queue/pieces/usage.js";
import type { Budget } from "../../admission/budget.js";
import { askRedis } from "../../admission/ask-redis.js";
import { budgetOf, type LimitedTenant } from "../../auth/owner/limits.js";
import type { UsedBudgets } from "../../fleet/beside-queue.js";
import { usedBy, type Used, type UsedPlace } from "./used.js";

/**
 * @returns by the name of the limit; a limit of 0 forbids all, and has no part in use
 * @throws InferenceError `unavailable`
 */
export async function usedBudgets(
  place: UsedPlace,
  limited: Pick<LimitedTenant, "id" | "limits">,
): Promise<UsedBudgets> {
  const budget = budgetOf(undefined, limited, undefined);
  if (budget === undefined) return {};
  const { quotas = [] } = budget;
  const used = await usedBy(place, { tenant: limited.id, budget }, new Set(Object.keys(limited.limits)));
  return { ...partsOf(budget, used), ...(await quotaPart(place, quotas)) };
}

/** Used and allowed, by the name of the limit. */
function partsOf(budget: Budget, used: Used): UsedBudgets {
  const [rate, tokens] = [budget.rates[0], budget.tokens?.[0]];
  const taken = (most: number | undefined, remaining: number | undefined) =>
    most === undefined || remaining === undefined ? undefined : most - remaining;
  const all: Readonly<Record<string, readonly [used: number | undefined, most: number | undefined]>> = {
    requests_per_second: [taken(rate?.burst, used.requests?.remaining), rate?.burst],
    tokens_per_minute: [taken(tokens?.burst, used.tokens?.remaining), tokens?.burst],
    concurrent_streams: [used.concurrent_streams, budget.generations?.[0]?.most],
    queued_requests: [used.queued_requests, budget.queued?.requests],
    queued_bytes: [used.queued_bytes, budget.queued?.bytes],
    live_sequences: [used.live_sequences, budget.liveSequences],
    files: [used.files, budget.counts?.files],
    file_bytes: [used.file_bytes, budget.counts?.file_bytes],
    jobs: [used.jobs, budget.counts?.jobs],
    schedules: [used.schedules, budget.counts?.schedules],
    webhooks: [used.webhooks, budget.counts?.webhooks],
    batches: [used.batches, budget.counts?.batches],
  };
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, [count, most]]) =>
      count === undefined || most === undefined || most <= 0 ? [] : [[name, count / most]],
    ),
  );
}

/** Of the things that the quota counts, the one of which the largest part is used. */
async function quotaPart({ redis, buckets }: UsedPlace, quotas: readonly Quota[]): Promise<UsedBudgets> {
  const counted = quotas.filter(({ most }) => most > 0);
  if (counted.length === 0) return {};
  const all = redis.isCluster ? Array.from({ length: buckets }, (_, bucket) => bucket) : [undefined];
  const fields = counted.map(loadFieldOf);
  const taken = await askRedis(() => Promise.all(all.map((bucket) => readTaken(redis, bucket, fields))));
  const parts = counted.map(({ most }, i) => taken.reduce((sum, loads) => sum + (loads[i]?.requests ?? 0), 0) / most);
  return { quota: Math.max(...parts) };
}
