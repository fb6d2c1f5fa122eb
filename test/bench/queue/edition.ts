/**
 * All of the queue's own code that the rows call by name: the processes of a simulated fleet, and a
 * worker's reads. Every other row asks HTTP and Redis alone. If liveness or the reading changes,
 * this file does, too.
 */
import { setMaxListeners } from "node:events";
import type { Redis } from "ioredis";
import { pinOf } from "#shared/queue/address.js";
import { registryKeys } from "#shared/queue/keys.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { lanesOf } from "#shared/queue/work/lane.js";
import { lanesByKey, waitForNew } from "#shared/queue/work/stream.js";
import { RedisClocks } from "#shared/redis/clock.js";
import { connectBlockingReader, connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { FleetWatch } from "../../../gateway/fleet/watch.js";
import { OutageGuard } from "../../../worker/lane/outage-guard.js";
import { Liveness } from "../../../worker/liveness/liveness.js";
import { announcementOf, servedModel } from "../../fixtures/served-models.js";
import { silentLog } from "../../support/silent.js";

/** How many processes to simulate: the fleet of the limit. */
export const simulated: { readonly workers: number; readonly gateways: number } = { workers: 1_000, gateways: 100 };

const LEASE_MS = 1_000;
const BUCKETS = 16;
const CONNECTED_WITHIN_MS = 20_000;
const JOINED_WITHIN_MS = 20_000;
const SETTLED_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 100;
/** How many connections start side by side, because Redis lets at most 511 new connections wait. */
const STARTED_TOGETHER = 50;

/** The numbers in the deployment's record, as text. */
export async function deploymentOf(redis: Redis): Promise<string> {
  const agreed = await redis.hgetall(registryKeys.deployment);
  const numbers = Object.entries(agreed).filter(([, value]) => /^\d{1,6}$/.test(value));
  return numbers.map(([name, value]) => `${name} ${value}`).join(", ");
}

/** How many workers have beaten within their lease. All have, if the machine carries the fleet. */
export async function workersInTime(redis: Pick<Redis, "time" | "zcount">): Promise<number> {
  const [seconds, micros] = await redis.time();
  return redis.zcount(registryKeys.workers, Number(seconds) * 1_000 + Number(micros) / 1_000, "+inf");
}

/**
 * Starts the workers' heartbeats and their look for dead workers. The workers beat until the
 * process ends.
 * @returns when all beat in time, or at the latest SETTLED_WITHIN_MS after the last worker has
 * joined
 */
export async function simulateWorkers(url: string): Promise<void> {
  await startEach(simulated.workers, (i) => startWorker(url, `worker-${i}`));
  const redis = await connected(connectRedis({ url, name: "looks", log: silentLog }));
  const giveUpAt = performance.now() + SETTLED_WITHIN_MS;
  while ((await workersInTime(redis)) < simulated.workers && performance.now() < giveUpAt) {
    await delay(LOOK_EVERY_MS);
  }
  redis.disconnect();
}

/**
 * Starts the gateways' views of the fleet, which last until the thread ends. Each gateway reads the
 * whole fleet first. For a thousand workers that keeps a thread busy, so the workers need another.
 */
export async function simulateGateways(url: string): Promise<void> {
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  await startEach(simulated.gateways, (i) => startGateway(url, `gw-${i}`, signal));
}

async function startEach(count: number, start: (i: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < count; from += STARTED_TOGETHER) {
    const some = Math.min(STARTED_TOGETHER, count - from);
    await Promise.all(Array.from({ length: some }, (_, i) => start(from + i)));
  }
}

/** Starts a worker that serves a single model, and holds nothing. */
async function startWorker(url: string, worker: string): Promise<void> {
  const redis = await connected(connectRedis({ url, name: worker, log: silentLog }));
  const liveness = new Liveness({
    redis,
    worker,
    clocks: new RedisClocks(redis),
    outageGuard: new OutageGuard(LEASE_MS, performance.now()),
    leaseMs: LEASE_MS,
    buckets: BUCKETS,
    healthFile: undefined,
    log: silentLog,
  });
  const served = servedModel("sum", { digest: "0".repeat(64) });
  const lanes = lanesOf({ model: served.name, ...pinOf(served), buckets: BUCKETS });
  await liveness.join({ ...announcementOf([served]), worker }, lanes, JOINED_WITHIN_MS);
}

async function startGateway(url: string, gateway: string, signal: AbortSignal): Promise<void> {
  const redis = await connected(connectRedis({ url, name: gateway, log: silentLog }));
  await FleetWatch.start({ redis, buckets: BUCKETS, log: silentLog }, signal);
}

/** A worker's reads. */
export interface Reads {
  /** How many streams the worker serves. */
  readonly streams: number;
  /** Looks once for work in all streams, without finding any. */
  once(): Promise<void>;
  close(): void;
}

/** How long a look waits. A real worker's look waits longer, at no further cost for Redis. */
const BLOCK_MS = 1;

/** Opens the reads of a worker that serves this many models with this many queues each. */
export async function openReads(url: string, models: number, queues: number): Promise<Reads> {
  const lanes = Array.from({ length: models }, (_, i) =>
    lanesOf({ model: `model-${i}`, version: "1", digest: "0".repeat(12), buckets: queues }),
  ).flat();
  const settings = { url, name: "reader", log: silentLog };
  const reader = await connected(connectBlockingReader(settings));
  await Promise.all(lanes.map((lane) => createGroup(reader, lane)));
  const byKey = lanesByKey(lanes);
  return {
    streams: lanes.length,
    async once() {
      await waitForNew(reader, "reader", byKey, 1, BLOCK_MS);
    },
    close() {
      reader.disconnect();
    },
  };
}

async function connected<Client extends RedisClient>(redis: Client): Promise<Client> {
  await whenReady(redis, AbortSignal.timeout(CONNECTED_WITHIN_MS));
  return redis;
}
