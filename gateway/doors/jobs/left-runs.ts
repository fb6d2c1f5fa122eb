/**
 * Looks for runs of deliveries that no process would make, or only much too late. BullMQ may lose a
 * run, for example in a failover. And a run that found no slot waits for the time that its process
 * has given, which is minutes if the receiver hung. That process calls the run when a slot is free,
 * but only while the process lives. So each process calls all waiting runs at its own start, and
 * after another process has gone.
 */
import type { Job } from "bullmq";
import type { Logger } from "pino";
import { readProcesses } from "#shared/queue/processes/note-process.js";
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
  /** Whether this process calls the run when a slot is free. */
  readonly isCalled: (run: DeliveryRun) => boolean;
  /** The BullMQ job of the run; undefined if BullMQ has lost the run. */
  readonly find: (run: DeliveryRun) => Promise<Job<DeliveryRun> | undefined>;
  readonly add: (run: DeliveryRun) => Promise<void>;
  readonly log: Logger;
}

const EVERY_MS = 5_000;
/** A run may be lost if its attempt is overdue by this time, in ms. */
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

/** Starts the runs that a dead process has put off. */
async function callAll(settings: LeftRunsSettings, signal: AbortSignal): Promise<void> {
  const { redis, isCalled, find } = settings;
  // A look gives a delivery a due time at least a second after `due`, so this loop ends.
  const due = (await deliveriesClock(redis)) - 1;
  const call = async (run: DeliveryRun) => {
    if (isCalled(run)) return;
    const job = await find(run);
    if (job !== undefined && (await job.isDelayed())) await job.promote().catch(() => undefined);
  };
  while (!signal.aborted && (await lookAt(settings, due, call)) === AT_ONCE);
}

/** Adds runs that BullMQ has lost, but no run that BullMQ has. */
async function addLost(settings: LeftRunsSettings): Promise<void> {
  const { redis, find, add, log } = settings;
  await lookAt(settings, (await deliveriesClock(redis)) - LOST_AFTER_MS, async (run) => {
    if ((await find(run)) !== undefined) return;
    log.warn({ delivery: run.message }, "a delivery is attempted again: its run was lost");
    await add(run);
  });
}

/** @returns how many deliveries it has looked at */
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
