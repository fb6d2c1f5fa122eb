/**
 * Looks for runs of deliveries that nobody would make, or only much too late. BullMQ may have lost
 * one, as after a failover. And a run that found no slot waits for as long as its process has told
 * it, minutes where the receiver hung; that process calls it when there is room, but only while it
 * lives. So when one has gone, and at its own start, each process calls all that waits.
 */
import type { Job } from "bullmq";
import type { Logger } from "pino";
import { readProcesses } from "#shared/queue/note-process.js";
import type { DeliveryRun } from "#shared/queue/webhooks/begin-delivery.js";
import {
  deliveriesClock,
  noteLooked,
  overdueDeliveries,
  readSummary,
  type NamedDelivery,
} from "#shared/queue/webhooks/deliveries.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";

export interface LeftRunsSettings {
  readonly redis: RedisClient;
  /** Whether this process calls the run when there is room. */
  readonly isCalled: (run: DeliveryRun) => boolean;
  /** As BullMQ has it; undefined where it is lost. */
  readonly find: (run: DeliveryRun) => Promise<Job<DeliveryRun> | undefined>;
  readonly add: (run: DeliveryRun) => Promise<void>;
  readonly log: Logger;
}

const EVERY_MS = 5_000;
/** A delivery that should have been attempted so long ago may be lost. */
const LOST_AFTER_MS = 30_000;
const AT_ONCE = 100;

/** Looks until `signal` aborts. */
export async function lookForLeft(settings: LeftRunsSettings, signal: AbortSignal): Promise<void> {
  const { redis, log } = settings;
  let before: ReadonlySet<string> | undefined;
  while (!signal.aborted) {
    try {
      if (redis.status === "ready") {
        const listed = (await readProcesses(redis)).filter(({ kind }) => kind === "jobs");
        const now = new Set(listed.map(({ name }) => name));
        const hasLost = before === undefined || [...before].some((name) => !now.has(name));
        if (hasLost) await callAll(settings, signal);
        before = now;
        await addLost(settings);
      }
    } catch (error) {
      log.debug({ error: String(error) }, "deliveries that were left behind cannot be looked for now");
    }
    await delay(EVERY_MS * (0.8 + Math.random() * 0.4), signal);
  }
}

/** Runs that were sent away by a process that is gone are tried now. */
async function callAll(settings: LeftRunsSettings, signal: AbortSignal): Promise<void> {
  const { redis, isCalled, find } = settings;
  // Who is looked at is due a second later at the earliest, so this comes to an end.
  const due = (await deliveriesClock(redis)) - 1;
  const call = async (run: DeliveryRun) => {
    if (isCalled(run)) return;
    const job = await find(run);
    if (job !== undefined && (await job.isDelayed())) await job.promote().catch(() => undefined);
  };
  while (!signal.aborted && (await lookAt(settings, due, call)) === AT_ONCE);
}

/** A run that BullMQ has is not added a second time. */
async function addLost(settings: LeftRunsSettings): Promise<void> {
  const { redis, find, add, log } = settings;
  await lookAt(settings, (await deliveriesClock(redis)) - LOST_AFTER_MS, async (run) => {
    if ((await find(run)) !== undefined) return;
    log.warn({ delivery: run.message }, "a delivery is attempted again: its run was lost");
    await add(run);
  });
}

/** @returns how many deliveries were looked at */
async function lookAt(
  { redis }: LeftRunsSettings,
  due: number,
  act: (run: DeliveryRun) => Promise<void>,
): Promise<number> {
  const look = async ({ tenant, message }: NamedDelivery) => {
    const delivery = await readSummary(redis, tenant, message);
    const isPending = delivery?.state === "pending";
    if (isPending) await act({ tenant, message, run: delivery.run });
    await noteLooked(redis, { tenant, message }, isPending);
  };
  const overdue = await overdueDeliveries(redis, due, AT_ONCE);
  await Promise.all(overdue.map(look));
  return overdue.length;
}
