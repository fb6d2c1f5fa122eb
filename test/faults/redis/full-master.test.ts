/**
 * A full master of a Cluster costs only its own buckets: a gateway is ready while another master
 * takes requests, and not ready when all masters are full. No client sends a request meanwhile.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { FleetWatch } from "../../../gateway/fleet/watch.js";
import { startRedisCluster, type RedisCluster } from "../../support/brokers/redis-cluster.js";
import { silentLog } from "../../support/silent.js";
import { until } from "../../support/until.js";

const BUCKETS = 16;

let cluster: RedisCluster;
let redis: RedisClient;
beforeAll(async () => {
  cluster = await startRedisCluster();
  redis = connectRedis({ url: cluster.url, name: "gw", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
});
afterAll(async () => {
  redis.disconnect();
  await cluster.dispose();
});

it("is ready until all masters are full, and again when one of them is not", async () => {
  const stop = new AbortController();
  try {
    const fleet = await FleetWatch.start({ redis, buckets: BUCKETS, log: silentLog }, stop.signal);
    const unserved = async () =>
      (
        (await fleet.describe("")) as { readonly unserved?: readonly { readonly buckets: readonly number[] }[] }
      ).unserved?.flatMap(({ buckets }) => buckets) ?? [];
    const [first, ...others] = await cluster.mastersNow();
    if (first === undefined) throw new Error("a Cluster has several masters");
    const owners = await Promise.all(Array.from({ length: BUCKETS }, (_, i) => cluster.masterOf(bucketTag(i))));
    const buckets = owners.flatMap((owner, bucket) => (owner === first ? [bucket] : []));

    await first.admin.config("SET", "maxmemory", "1");
    await until(async () => (await unserved()).join() === buckets.join());
    expect(fleet.canAdmit).toBe(true);
    for (const { admin } of others) await admin.config("SET", "maxmemory", "1");
    await until(() => !fleet.canAdmit);
    await first.admin.config("SET", "maxmemory", "0");
    await until(() => fleet.canAdmit);
    expect(await unserved()).toHaveLength(BUCKETS - buckets.length);
  } finally {
    stop.abort();
  }
});
