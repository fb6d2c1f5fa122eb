/**
 * In a Cluster each bucket has its own admission calls: a bucket whose master is gone delays no
 * other bucket.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Lane } from "#shared/queue/address.js";
import { callsKey, laneKeys } from "#shared/queue/keys.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { AdmissionBatcher } from "../../../gateway/admission/batcher.js";
import { startRedisCluster, type RedisCluster } from "../../support/brokers/redis-cluster.js";
import { applicant, LIMITS } from "../../support/queue/lab.js";
import { silentLog } from "../../support/silent.js";

const GATEWAY = "gw-lines";
const laneOf = (bucket: number): Lane => ({ bucket, model: "m", version: "1", digest: "d" });

let cluster: RedisCluster;
let redis: RedisClient;
let batcher: AdmissionBatcher;
beforeAll(async () => {
  cluster = await startRedisCluster();
  redis = connectRedis({ url: cluster.url, name: GATEWAY, log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
  batcher = new AdmissionBatcher(redis, { gateway: GATEWAY, limits: LIMITS });
});
afterAll(async () => {
  redis.disconnect();
  await cluster.dispose();
});

const admitted = async (bucket: number, request: string) =>
  (await batcher.admit(applicant(laneOf(bucket), request, "body"), batcher.nextPlace())).said;

it("holds up no other bucket where one has no master", { timeout: 60_000 }, async () => {
  const buckets = Array.from({ length: 8 }, (_, bucket) => bucket);
  expect(await Promise.all(buckets.map((bucket) => admitted(bucket, "first")))).toEqual(buckets.map(() => "admitted"));
  for (const bucket of buckets) expect(await redis.pttl(callsKey(GATEWAY, bucket))).toBeGreaterThan(0);

  const dead = await cluster.masterOf(laneKeys(laneOf(0)).ready);
  const masters = await Promise.all(buckets.map((bucket) => cluster.masterOf(laneKeys(laneOf(bucket)).ready)));
  const alive = buckets.filter((bucket) => masters[bucket] !== dead);
  expect(alive).not.toHaveLength(0);
  dead.freeze();
  try {
    let isHeldUp = true;
    const heldUp = admitted(0, "second")
      .catch(() => "unknown")
      .finally(() => (isHeldUp = false));
    for (const request of ["second", "third", "fourth"]) {
      const said = await Promise.all(alive.map((bucket) => admitted(bucket, request)));
      expect(said).toEqual(alive.map(() => "admitted"));
    }
    expect(isHeldUp).toBe(true);
    await heldUp;
  } finally {
    dead.thaw();
  }
});
