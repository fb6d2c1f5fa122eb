/** The cost for Redis within a window of time: under load, or idle. */
import type { Redis } from "ioredis";
import type { RedisServer } from "../../support/brokers/redis.js";
import { runChild } from "../support/child.js";
import { keepAppending, readCounters, spentBetween, type Counters, type Spent } from "./counters.js";

/** The facts that each row has beside its figures. */
export interface RowResult {
  /** Checked answers, and how many of these were wrong. */
  readonly checked: number;
  readonly wrong: number;
  /** The details behind the figures, for a reader. */
  readonly detail: string;
}

/**
 * Runs a measurement in a process of its own, and reads Redis' counters at the beginning and the
 * end of its window.
 */
export async function whileRunning<Job, Result>(
  redis: Redis,
  module: URL,
  job: Job,
): Promise<{ readonly result: Result; readonly spent: Spent }> {
  const readings: Promise<Counters>[] = [];
  const read = () => void readings.push(readCounters(redis));
  const result = await runChild<Job, Result>(module, job, read, read);
  const [from, to] = await Promise.all(readings);
  if (from === undefined || to === undefined) throw new Error(`${module.pathname} told of no window`);
  return { result, spent: spentBetween(from, to) };
}

/** The cost for Redis in the next `ms` milliseconds. */
export async function within(redis: Redis, ms: number): Promise<Spent> {
  const from = await readCounters(redis);
  await pause(ms);
  return spentBetween(from, await readCounters(redis));
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Lends a connection for a row's own commands, and closes the connection even after an error. */
export async function asking<T>(server: RedisServer, ask: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = server.connect();
  try {
    await keepAppending(redis);
    return await ask(redis);
  } finally {
    redis.disconnect();
  }
}
