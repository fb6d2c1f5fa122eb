/** In a Redis Cluster the rates and counts of an owner lie in all buckets, and batches in none. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { admit } from "#shared/queue/admission/admit.js";
import { readUsed } from "#shared/queue/admission/read-used.js";
import { pinOf } from "#shared/queue/address.js";
import { writeBatch } from "#shared/queue/batches/write-batch.js";
import { readUsage, readUsers } from "#shared/queue/owners/usage.js";
import { batchKeys } from "#shared/queue/keys.js";
import { shareOfRate } from "#shared/queue/pieces/rates.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { QueueLoads } from "../../gateway/admission/loads.js";
import { startRedisCluster, type RedisCluster } from "../support/brokers/redis-cluster.js";
import { servedModel } from "../fixtures/served-models.js";
import { applicant, LIMITS, onlyCall } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

const BUCKETS = 16;

let cluster: RedisCluster;
let redis: RedisClient;
beforeAll(async () => {
  cluster = await startRedisCluster();
  redis = connectRedis({ url: cluster.url, name: "owners", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
});
afterAll(async () => {
  redis.disconnect();
  await cluster.dispose();
});

it("tells what an owner has used as sums over all buckets", async () => {
  const rates = [{ name: "k:summed", periodUs: 1e9, burst: 2 * BUCKETS }];
  for (let bucket = 0; bucket < BUCKETS; bucket += 3) {
    const lane = { bucket, model: "m", ...pinOf(servedModel("m")) };
    const own = rates.map((rate) => shareOfRate(rate, bucket, BUCKETS));
    const asked = { ...applicant(lane, randomUUID(), "body"), tenant: "summed", rates: own };
    const call = await admit(redis, { gateway: "gw", limits: LIMITS }, [asked], onlyCall(bucket));
    expect(call).toMatchObject({ said: "answered", admissions: [{ said: "admitted" }] });
  }
  const { standings, loads } = await readUsed(redis, BUCKETS, { rates, fields: ["t:summed", "t:other"] });
  expect(standings).toMatchObject([{ name: "k:summed", remaining: 2 * BUCKETS - 6 }]);
  // Each bucket takes 16 times as long as the whole.
  expect(standings[0]?.resetUs).toBeGreaterThan(15 * 1e9);
  expect(standings[0]?.resetUs).toBeLessThanOrEqual(16 * 1e9);
  expect(loads).toMatchObject([
    { field: "t:summed", requests: 6 },
    { requests: 0, bytes: 0 },
  ]);
  const small = [{ name: "k:small", periodUs: 1e9, burst: 5 }];
  const rested = await readUsed(redis, BUCKETS, { rates: small, fields: ["t:summed"] });
  expect(rested.standings).toEqual([{ name: "k:small", remaining: 5, resetUs: 0 }]);
});

it("holds a quota against the sum of all buckets, and reads usage from all of them", async () => {
  const quotas = [{ name: "t:bounded", field: "requests", most: 6 }] as const;
  const usage = { key: "k1", counts: 1 } as const;
  const shares = new QueueLoads({ redis, limits: LIMITS, buckets: BUCKETS, log: silentLog });
  const stop = new AbortController();
  const watching = shares.watch(stop.signal);
  const ask = async (bucket: number) => {
    const lane = { bucket, model: "m", ...pinOf(servedModel("m")) };
    const asked = { ...applicant(lane, randomUUID(), "body"), tenant: "bounded", quotas, usage };
    const call = await admit(
      redis,
      { gateway: "gw", limits: LIMITS, shares, buckets: BUCKETS },
      [asked],
      onlyCall(bucket),
    );
    return call.said === "answered" ? call.admissions[0] : undefined;
  };
  for (let bucket = 0; bucket < 6; bucket++) expect(await ask(bucket)).toMatchObject({ said: "admitted" });
  // What the others have counted is known within a second.
  const refused = { said: "over-quota", name: "t:bounded", field: "requests" };
  await expect.poll(() => shares.quotaOf(9, quotas[0])).toBe(0);
  expect([await ask(9), await ask(0)]).toEqual([refused, refused]);
  stop.abort();
  await watching;
  const day = new Date().toISOString().slice(0, 10);
  const pairs = await readUsage(redis, BUCKETS, "bounded", day);
  expect(pairs.every(({ key, model }) => key === "k1" && model === "m")).toBe(true);
  expect(pairs.reduce((sum, { sums }) => sum + sums.requests, 0)).toBe(6);
  expect(await readUsers(redis, BUCKETS, day.slice(0, 7))).toContain("bounded");
});

it("makes batches within a bucket's share of a rate, and forgets the share once it is rested", async () => {
  const make = async (name: string, periodUs: number) => {
    const rates = [shareOfRate({ name, periodUs, burst: 2 * BUCKETS }, 0, BUCKETS)];
    const id = randomUUID();
    const batch = { tenant: "acme", id, from: undefined, to: JSON.stringify({ id }), open: "in_progress", rates };
    return (await writeBatch(redis, batch, { keptMs: 60_000, open: 200, known: 200 })).said;
  };
  const said = [await make("k:rare", 1e9), await make("k:rare", 1e9), await make("k:rare", 1e9)];
  expect(said).toEqual(["written", "written", "too-soon"]);
  await make("k:often", 1);
  const known = (): Promise<string[]> => redis.hkeys(`${batchKeys.load}:rates`);
  expect((await known()).toSorted()).toEqual(["k:often", "k:rare"]);
  const stop = new AbortController();
  const watching = new QueueLoads({ redis, limits: LIMITS, buckets: BUCKETS, log: silentLog }).watch(stop.signal);
  await expect.poll(known).toEqual(["k:rare"]);
  stop.abort();
  await watching;
});
