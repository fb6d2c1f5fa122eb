/** The rows that need Redis alone: a simulated fleet's liveness, and a worker of many models. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startRedis, type RedisServer } from "../../support/brokers/redis.js";
import type { Timing } from "../steps/scenarios.js";
import { allCalls, cpuPercent, describeCalls, readCounters, spentBetween } from "./counters.js";
import { openReads, simulated, workersInTime } from "./edition.js";
import type { SimulatedJob, SimulatedResult } from "./simulated.js";
import { asking, whileRunning, type RowResult } from "./window.js";

export interface AlonePlan {
  readonly folder: string;
  readonly timing: Timing;
}

export interface LivenessCost extends RowResult {
  /** Percent of a core. */
  readonly redisPercent: number;
  readonly callsPerSecond: number;
}

export interface WideReadCost extends RowResult {
  /** Microseconds of Redis' CPU each time that a worker looks for work in all its streams. */
  readonly redisUs: number;
}

export function measureLiveness({ folder, timing }: AlonePlan): Promise<LivenessCost> {
  return withRedis(folder, (server) =>
    asking(server, async (redis) => {
      const job: SimulatedJob = { url: server.url, ...timing };
      const program = new URL("./simulated.js", import.meta.url);
      const { result, spent } = await whileRunning<SimulatedJob, SimulatedResult>(redis, program, job);
      const inTime = await workersInTime(redis);
      return {
        redisPercent: cpuPercent(spent),
        callsPerSecond: allCalls(spent.calls) / spent.seconds,
        checked: 0,
        wrong: 0,
        detail:
          `${simulated.workers} workers and ${simulated.gateways} gateways in one process, ` +
          `which took ${(result.ownShare * 100).toFixed(0)} % of a core; ` +
          `${inTime} workers were in time at the end; ` +
          `calls per second: ${describeCalls(spent.calls, spent.seconds)}`,
      };
    }),
  );
}

const MODELS = 100;
const QUEUES = 16;

export function measureWideRead({ folder, timing }: AlonePlan): Promise<WideReadCost> {
  return withRedis(folder, (server) =>
    asking(server, async (redis) => {
      const reads = await openReads(server.url, MODELS, QUEUES);
      try {
        await reads.once(); // makes the consumers
        const from = await readCounters(redis);
        const endsAt = performance.now() + timing.measureMs;
        let times = 0;
        while (performance.now() < endsAt) {
          await reads.once();
          times++;
        }
        const spent = spentBetween(from, await readCounters(redis));
        return {
          redisUs: (spent.cpuMs * 1_000) / times,
          checked: 0,
          wrong: 0,
          detail: `${reads.streams} streams, looked at ${times} times; calls each time: ${describeCalls(spent.calls, times)}`,
        };
      } finally {
        reads.close();
      }
    }),
  );
}

async function withRedis<T>(within: string, measure: (server: RedisServer) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(within, "redis-"));
  const server = await startRedis(folder);
  try {
    return await measure(server);
  } finally {
    await server.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
