/**
 * The time that the reports of ten busy models add to the script of a heartbeat in Redis. The flush
 * of the file is not in it, because a busy fleet flushes all the time for its steps.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ReportField } from "#shared/queue/pieces/report.js";
import { readReports } from "#shared/queue/admission/read-reports.js";
import { announce } from "#shared/queue/work/liveness/announce.js";
import { heartbeat } from "#shared/queue/work/liveness/heartbeat.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { announcementOf } from "../../fixtures/served-models.js";
import { startRedis } from "../../support/brokers/redis.js";
import { silentLog } from "../../support/silent.js";
import { ModelReport } from "../../../worker/lane/model-report.js";
import { ProcessReports } from "#shared/queue/processes/reports.js";

export interface BeatsCost {
  /** µs of the script for a beat. */
  readonly withUs: number;
  readonly withoutUs: number;
  readonly checked: number;
  readonly wrong: number;
}

const MODELS = 10;
const BEATS = 12_000;
const leaseMs = 60_000;
/** A third of the usual lease. */
const BEAT_MS = 333;

export async function measureBeats(within: string): Promise<BeatsCost> {
  const folder = mkdtempSync(join(within, "beats-"));
  const server = await startRedis(folder);
  const redis = connectRedis({ url: server.url, name: "bench", log: silentLog });
  const spentUs = async () =>
    Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await redis.info("commandstats"))?.[1]);
  try {
    await whenReady(redis, AbortSignal.timeout(10_000));
    for (const worker of ["quiet", "busy"]) {
      await announce(redis, { announcement: { ...announcementOf([]), worker }, leaseMs, connection: "", lanes: [] });
    }
    const before = await spentUs();
    for (let i = 0; i < BEATS; i++) await beat(redis, "quiet", []);
    const between = await spentUs();
    const wrong = (await beatBusily(redis)) ? 0 : 1;
    return {
      withUs: ((await spentUs()) - between) / BEATS,
      withoutUs: (between - before) / BEATS,
      checked: 1,
      wrong,
    };
  } finally {
    redis.disconnect();
    await server.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function beat(redis: RedisClient, worker: string, report: readonly ReportField[]): Promise<void> {
  const { said } = await heartbeat(redis, { worker, leaseMs, silentMs: undefined, connection: undefined, report });
  if (said !== "noted") throw new Error(`${worker} is unknown`);
}

/** @returns whether Redis has all that was counted */
async function beatBusily(redis: RedisClient): Promise<boolean> {
  const reports = new ProcessReports("busy");
  const models = Array.from({ length: MODELS }, (_, i) => new ModelReport({ model: `m${i}`, version: "1" }));
  for (const model of models) reports.add(model);
  const terms = { toRedis: (at: number) => at };
  for (let i = 0; i < BEATS; i++) {
    const now = i * BEAT_MS;
    for (const model of models) {
      model.ran(16, 0.2, 2);
      model.tookApart(16, 0.1);
      model.succeeded(1, now);
      model.took({ requestMs: 4, queueMs: 1, inputMs: 0.2, inferMs: 2, outputMs: 0.1 });
    }
    await beat(redis, "busy", reports.next(now, terms));
    reports.arrived();
  }
  await beat(redis, "busy", reports.next(BEATS * BEAT_MS, { ...terms, isLast: true }));
  const { reports: all } = await readReports(redis);
  const whole = all.filter(({ part, sums }) => part.of === "version" && sums[0] === BEATS);
  return whole.length === MODELS;
}
