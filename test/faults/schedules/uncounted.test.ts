/**
 * A run that a process submitted and did not count is counted once workers are back, so a limit is
 * exact. The process dies between both, and another process takes over while no worker lives.
 */
import { expect, it } from "vitest";
import { registryKeys, scheduleKeys } from "#shared/queue/keys.js";
import { simpleBody } from "../../jobs/ask.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";
import { find, jobsOf, made } from "../../schedules/ask.js";

const served = useFleet({ jobs: 1, models: ["simple"], direct: true });
const LIMIT = 3;

it(
  "counts a run that was submitted and not counted, although no worker lives meanwhile",
  {
    timeout: 120_000,
  },
  async () => {
    const { url, fleet } = served;
    const [worker, jobs] = [fleet.workers[0], fleet.jobs[0]];
    const redis = fleet.redis.connect();
    const { id } = await made(url, "simple", { every: 1_000, limit: LIMIT, job: { infer: simpleBody(1) } });
    await until(async () => (await find(url, id)).runs === 1);
    await jobs?.kill();
    await worker?.kill();

    // The record before the run is counted.
    const key = scheduleKeys.schedule("default", id);
    const facts = JSON.parse((await redis.hget(key, "facts")) ?? "") as Record<string, unknown>;
    const { runs, lastTick } = facts as { runs: number; lastTick: number };
    expect(runs).toBeLessThan(LIMIT);
    const before = { ...facts, runs: runs - 1, lastTick: null, lastJob: null, firing: lastTick, next: lastTick };
    await redis.hset(key, "facts", JSON.stringify(before));
    await redis.zadd(scheduleKeys.due, lastTick, `default:${id}`);
    const isLate = async () => Number((await redis.time())[0]) * 1_000 > lastTick + 3_000;
    await until(isLate);

    // As ten minutes later: the announcements of the worker are gone.
    await redis.del(registryKeys.announcements);
    await jobs?.start();
    // The jobs process looked at the schedule: BullMQ has its next look in store.
    await until(async () => (await redis.zcard("{jobs}:schedules:delayed")) > 0);
    expect(await find(url, id)).toMatchObject({ runs: runs - 1, last_error: null });
    await worker?.start();
    await until(async () => (await find(url, id)).state === "ended", 60_000);
    expect(await find(url, id)).toMatchObject({ runs: LIMIT });
    expect(await jobsOf(url, id)).toHaveLength(LIMIT);
    redis.disconnect();
  },
);
