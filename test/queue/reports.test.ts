/** Reports of workers in Redis: they come with beats, and outlive the workers. */
import { afterEach, describe, expect, it } from "vitest";
import { readReports } from "#shared/queue/admission/read-reports.js";
import { registryKeys, REMEMBERED_MS } from "#shared/queue/keys.js";
import { addedSums, pageField, pageText, partText, type ReportField } from "#shared/queue/pieces/report.js";
import { readLoads } from "#shared/queue/processes/read-loads.js";
import { writeLoad } from "#shared/queue/processes/worker-load.js";
import { announce } from "#shared/queue/work/liveness/announce.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import { heartbeat } from "#shared/queue/work/liveness/heartbeat.js";
import { announcementOf } from "../fixtures/served-models.js";
import { useLab } from "../support/queue/lab.js";

const leaseMs = 60_000;
const lab = useLab();
afterEach(() => lab.redis.flushall());

const join = (worker: string) =>
  announce(lab.redis, { announcement: { ...announcementOf([]), worker }, leaseMs, connection: "", lanes: [] });
const beat = (worker: string, report?: readonly ReportField[]) =>
  heartbeat(lab.redis, { worker, leaseMs, silentMs: undefined, connection: undefined, ...(report && { report }) });
/** @param sums of each part */
const reportOf = (worker: string, ...sums: (readonly [string, number, readonly number[]])[]): ReportField[] => [
  ...sums.map(([subject, last, numbers], n) => ({
    field: pageField(worker, n),
    figures: partText(subject, last, numbers),
  })),
  { field: worker, figures: String(sums.length) },
];
/** The sums over all workers and the past, by version and part. */
async function sums(): Promise<Record<string, readonly number[]>> {
  const all: Record<string, number[]> = {};
  const { reports, past } = await readReports(lab.redis);
  for (const { model, version, part, sums: own } of [...reports, ...past]) {
    const name = `${model}/${version}/${part.of}`;
    all[name] = addedSums(all[name], own);
  }
  return all;
}

describe("the report of a worker", () => {
  it("counts the same while the worker lives, once it has gone, and if it is buried twice", async () => {
    await join("a");
    await join("b");
    await beat("a", reportOf("a", ["m/1", 5, [1, 2, 3]], ["m/1/runs 4", 0, [7, 8]]));
    // A page may have several parts.
    const parts = [partText("m/1", 9, [10, 20, 30, 40]), partText("m/1/times 0", 0, [1])];
    await beat("b", [
      { field: pageField("b", 0), figures: pageText(parts) },
      { field: "b", figures: "1" },
    ]);
    const all = { "m/1/version": [11, 22, 33, 40], "m/1/runs": [7, 8], "m/1/times": [1] };
    expect(await sums()).toEqual(all);
    for (const worker of ["a", "b", "a"]) {
      await bury(lab.redis, worker, { why: "ended" }, []);
      expect(await sums()).toEqual(all);
    }
    expect(await lab.redis.exists(registryKeys.reports)).toBe(0);
    expect(await lab.redis.hgetall(registryKeys.past)).toEqual({
      "m/1": "m/1|9|11 22 33 40",
      "m/1/runs 4": "m/1/runs 4|0|7 8",
      "m/1/times 0": "m/1/times 0|0|1",
    });
  });

  it("names the worker of each part, and takes the jobs that the worker held to no past", async () => {
    await join("a");
    await join("b");
    await beat("a", reportOf("a", ["m/1", 5, [1]], ["m/1/jobs 0", 0, [2]]));
    await beat("b", reportOf("b", ["m/1/jobs 0", 0, [3]]));
    const held = async () => {
      const { reports, past } = await readReports(lab.redis);
      expect(past.some(({ part }) => part.of === "jobs")).toBe(false);
      return reports.flatMap(({ process, part, sums: [jobs] }) =>
        part.of === "jobs" ? [[process, jobs] as const] : [],
      );
    };
    expect(new Map(await held())).toEqual(
      new Map([
        ["a", 2],
        ["b", 3],
      ]),
    );
    await bury(lab.redis, "a", { why: "ended" }, []);
    expect(await held()).toEqual([["b", 3]]);
    expect(await sums()).toEqual({ "m/1/version": [1], "m/1/jobs": [3] });
  });

  it("stays as it is while a silent worker may come back", async () => {
    const { redisNow } = await join("a");
    await beat("a", reportOf("a", ["m/1", 5, [1]]));
    const aliveUntil = Number(await lab.redis.zscore(registryKeys.workers, "a"));
    expect(redisNow).toBeLessThanOrEqual(aliveUntil);
    expect(await bury(lab.redis, "a", { why: "silent", aliveUntil }, [])).toBe(true);
    expect(await sums()).toEqual({ "m/1/version": [1] });
    // A buried worker's beat changes nothing before it has joined again.
    expect(await beat("a", reportOf("a", ["m/1", 6, [2]]))).toMatchObject({ said: "unknown" });
    expect(await sums()).toEqual({ "m/1/version": [1] });
    expect(await join("a")).toMatchObject({ isReportPast: false });
    await beat("a", reportOf("a", ["m/1", 6, [2]]));
    expect(await sums()).toEqual({ "m/1/version": [2] });
  });

  it("is in the past once the worker is forgotten, and a worker that comes back hears of it", async () => {
    await join("a");
    await join("b");
    await beat("a", reportOf("a", ["m/1", 5, [1]]));
    await lab.redis.zrem(registryKeys.workers, "a");
    await lab.redis.zadd(registryKeys.gone, Date.now() - 2 * REMEMBERED_MS, "a");
    await bury(lab.redis, "b", { why: "ended" }, []);
    expect(await lab.redis.hlen(registryKeys.reports)).toBe(0);
    expect(await sums()).toEqual({ "m/1/version": [1] });
    expect(await join("a")).toMatchObject({ isReportPast: true });
  });

  it("survives what a person writes into the keys", async () => {
    await join("a");
    await beat("a", reportOf("a", ["m/1", 5, [1]], ["no record", 0, [1]]));
    await lab.redis.hset(registryKeys.reports, "a", "many", "a 1", "nothing");
    expect(await bury(lab.redis, "a", { why: "ended" }, [])).toBe(true);
    await join("c");
    await beat("c", reportOf("c", ["m/1", 5, [1]]));
    await lab.redis.hset(registryKeys.past, "m/1", "nothing");
    await bury(lab.redis, "c", { why: "ended" }, []);
    await join("d");
    await beat("d", reportOf("d", ["m/1", 5, [1]]));
    await lab.redis.set(registryKeys.past, "no hash");
    expect(await bury(lab.redis, "d", { why: "ended" }, [])).toBe(true);
  });
});

describe("the load of a worker", () => {
  const load = {
    cpuRatio: 0.5,
    eventLoopMs: 1,
    memoryBytes: 1e8,
    leaseMs,
    stepsPerSecond: 3,
    tokensPerSecond: 0,
    busyRatio: 0.1,
    held: 2,
    cached: { "m/1": 40 },
  };

  it("comes with a beat, which says when, and leaves with the worker", async () => {
    for (const worker of ["a", "b", "c"]) await join(worker);
    await heartbeat(lab.redis, {
      worker: "a",
      leaseMs,
      silentMs: undefined,
      connection: undefined,
      load: writeLoad(load),
      report: [{ field: "a", figures: "1" }],
    });
    // As a worker of the version before: its first page has parts.
    await beat("b", [{ field: "b 0", figures: partText("m/1", 5, [1]) }]);
    await lab.redis.zincrby(registryKeys.workers, -5_000, "a");
    const loads = await readLoads(lab.redis, ["a", "b", "c", "d"]);
    expect([...loads]).toEqual([["a", { load, beatAgeMs: expect.any(Number) }]]);
    const age = loads.get("a")?.beatAgeMs ?? 0;
    expect(age).toBeGreaterThanOrEqual(5_000);
    expect(age).toBeLessThan(leaseMs);
    // It is no part of a report.
    expect(await sums()).toEqual({ "m/1/version": [1] });
    await bury(lab.redis, "a", { why: "ended" }, []);
    expect(await lab.redis.hkeys(registryKeys.reports)).toEqual(["b 0"]);
    expect(await readLoads(lab.redis, ["a"])).toEqual(new Map());
    expect(await readLoads(lab.redis, [])).toEqual(new Map());
  });
});
