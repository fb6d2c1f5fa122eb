/** Commits settlements and publishes what took effect, in that order: a client never sees an outcome that is not in Redis. */
import type { Bus } from "#shared/nats/connect.js";
import { retrying } from "#shared/retry.js";
import { isReplyError } from "#shared/redis/script.js";
import { publish, type Publication } from "../emit/publisher.js";
import { commit, type Fate } from "../queue/commit.js";
import type { LaneQueue } from "../queue/lane.js";
import type { States } from "../sequence/states.js";
import type { Settled } from "./execute.js";

export interface Settler {
  readonly queue: LaneQueue;
  readonly bus: Bus;
  readonly states: States;
  readonly maxIdleMs: number | undefined;
  /** How long a commit outlives a Redis outage. Past the lease it is most likely refused, which does no harm. */
  readonly budgetMs: number;
}

export type Fates = Readonly<Record<Fate, number>>;

/** @returns how many steps met which fate. @throws the Redis error when the budget is spent. */
export async function settle(settler: Settler, settled: readonly Settled[]): Promise<Fates> {
  const { queue, bus, states, maxIdleMs, budgetMs } = settler;
  const counts = { committed: 0, superseded: 0, already: 0, lost: 0 };
  if (settled.length === 0) return counts;
  const committing = retrying(() => commit(queue, settled, maxIdleMs), { budgetMs }).catch((error: unknown) => {
    // The stream is gone (Redis came back empty): there is nothing left to settle.
    if (isReplyError(error, "NOGROUP")) return settled.map((): Fate => "lost");
    throw error;
  });
  // The next step of a sequence may come back to this worker before the reply to the commit does, so what is committed is remembered now.
  for (const [i, { delivery, checkpoint }] of settled.entries()) {
    if (checkpoint === undefined || delivery.sequence === undefined) continue;
    const stands = committing.then(
      (fates) => fates[i] === "committed",
      () => false,
    );
    states.remember(delivery.sequence, delivery.entry, checkpoint, stands);
  }
  const fates = await committing;
  const publications: Publication[] = [];
  for (const [i, { delivery, outcome }] of settled.entries()) {
    const fate = fates[i] ?? "lost";
    counts[fate]++;
    if (fate === "committed") publications.push({ delivery, outcome });
    // Somebody's outcome stands, perhaps this very one under a lost reply: the gateway had better look.
    if (fate === "already") publications.push({ delivery, outcome: undefined });
  }
  publish(bus, publications);
  return counts;
}
