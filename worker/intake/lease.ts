/**
 * Renews the leases of what a lane holds, every third of a lease, on the thread that never computes. Safety does not hang on it: a
 * commit is refused unless the entry is still owned. It only saves work.
 */
import type { Logger } from "pino";
import type { RedisClock } from "#shared/redis/clock.js";
import { delay } from "#shared/retry.js";
import type { LaneQueue } from "../queue/lane.js";
import { renew } from "../queue/renew.js";
import type { Hand } from "./hand.js";
import type { Steadiness } from "./steadiness.js";

export interface LeaseKeeper {
  readonly queue: LaneQueue;
  readonly hand: Hand;
  readonly clock: RedisClock;
  readonly leaseMs: number;
  readonly steadiness: Steadiness;
  readonly log: Logger;
}

/** Ids per script call, to keep it under 2 ms of Redis's time. */
const RENEWALS_PER_CALL = 256;

export async function keepLeases(keeper: LeaseKeeper, signal: AbortSignal): Promise<void> {
  const { hand, leaseMs, steadiness, log } = keeper;
  while (!signal.aborted) {
    try {
      await renewAll(keeper);
      steadiness.renewed(performance.now());
    } catch (error) {
      // Too long without an answer: whatever waits here has most likely been taken over, and would be run twice.
      if (steadiness.silentFor(performance.now()) > leaseMs * 0.8) {
        const given = [...hand.waiting, ...hand.suspects].map(({ delivery }) => delivery.entry);
        if (given.length > 0) log.warn({ steps: given.length, error: String(error) }, "leases given up");
        hand.drop(given);
      }
    }
    await delay(leaseMs / 3, signal);
  }
}

async function renewAll({ queue, hand, clock, log }: LeaseKeeper): Promise<void> {
  const entries = hand.entries();
  for (let i = 0; i === 0 || i < entries.length; i += RENEWALS_PER_CALL) {
    const { redisNow, lost } = await renew(queue, entries.slice(i, i + RENEWALS_PER_CALL));
    clock.observe(redisNow);
    // A running step may just have been committed, which also ends the ownership; its own commit tells whether it was lost.
    const gone = lost.filter((entry) => hand.isWaiting(entry));
    hand.drop(gone);
    if (gone.length > 0) log.warn({ steps: gone.length }, "leases lost");
  }
}
