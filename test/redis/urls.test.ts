import { join } from "node:path";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisUrlFault, withRedisUser } from "#shared/broker-url.js";
import type { Lane } from "#shared/queue/address.js";
import { laneKeys } from "#shared/queue/keys.js";
import { commitRequests } from "#shared/queue/work/commit/commit-requests.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { lanesByKey, waitForNew } from "#shared/queue/work/stream.js";
import { connectBlockingReader, connectForQueue, connectRedis, mastersOf, whenReady } from "#shared/redis/connect.js";
import { slotOf } from "#shared/redis/slots.js";
import { startLoneMaster, startRedisCluster, type RedisCluster } from "../support/brokers/redis-cluster.js";
import { startRedisNode, type RedisNode } from "../support/brokers/redis-node.js";
import { startWatchedRedis, type WatchedRedis } from "../support/brokers/redis-sentinel.js";
import { admit, applicant, LIMITS, result } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

/** Longer than a test takes: the read ends because an entry comes. */
const BLOCK_MS = 20_000;

let folder: string;
let server: RedisNode;
let watched: WatchedRedis;
let cluster: RedisCluster;
let lone: RedisNode;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "baton-urls-"));
  server = await startRedisNode("redis", () => ({ unixsocket: join(folder, "redis.sock") }), folder);
  watched = await startWatchedRedis();
  cluster = await startRedisCluster();
  lone = await startLoneMaster("lone", folder);
});
afterAll(async () => {
  await Promise.all([server.dispose(), watched.dispose(), cluster.dispose(), lone.dispose()]);
  rmSync(folder, { recursive: true, force: true });
});

const urls: Readonly<Record<string, () => string>> = {
  "redis://": () => `redis://127.0.0.1:${server.port}`,
  "host and port": () => `127.0.0.1:${server.port}`,
  "a Unix socket": () => join(folder, "redis.sock"),
  "redis+sentinel://": () => watched.url,
  "redis+cluster://": () => cluster.url,
  "redis+cluster:// of a node that names no host": () => `redis+cluster://127.0.0.2:${lone.port}`,
  // The nodes know each other by another name.
  "redis+cluster:// with names": () => cluster.url.replaceAll("127.0.0.1", "localhost"),
};

describe("a user beside the address", () => {
  const places = ["redis://", "a Unix socket", "redis+sentinel://", "redis+cluster://"];
  const password = "p@ss/w?rd&%";

  it.each(places)("is the user of every connection: %s", async (kind) => {
    for (const { admin } of [server, ...watched.nodes, ...cluster.nodes]) {
      await admin.call("ACL", "SETUSER", "worker", "on", `>${password}`, "~*", "+@all");
    }
    const link = { url: withRedisUser(urls[kind]?.() ?? "", "worker", password), name: "gw", log: silentLog };
    const redis = connectRedis(link);
    await whenReady(redis, AbortSignal.timeout(60_000));
    const reader = connectBlockingReader(link, { key: "any", commands: redis });
    const queue = connectForQueue(link);
    try {
      await whenReady(reader, AbortSignal.timeout(60_000));
      const users = [redis, reader, queue].map((connection) => connection.call("ACL", ["WHOAMI"]));
      expect((await Promise.all(users)).map(String)).toEqual(["worker", "worker", "worker"]);
    } finally {
      for (const connection of [redis, reader, queue]) connection.disconnect();
    }
  });
});

describe.each(Object.keys(urls))("a URL of the kind %s", (kind) => {
  const url = () => urls[kind]?.() ?? "";
  // Several kinds lead to the same server.
  const lanes = (count: number, use: string) =>
    Array.from({ length: count }, (_, bucket): Lane => {
      const model = `${use}-${Object.keys(urls).indexOf(kind)}`;
      return { bucket, model, version: "1", digest: "d" };
    });

  it("leads to scripts and blocking reads, whichever slots their keys have", async () => {
    expect(redisUrlFault(url())).toBeUndefined();
    const redis = connectRedis({ url: url(), name: "gw", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(60_000));
    const slots = new Set<number>();
    for (const lane of lanes(8, "passed")) {
      const { ready } = laneKeys(lane);
      slots.add(Math.floor((slotOf(ready) * 3) / 16_384));
      await createGroup(redis, lane);
      const reader = connectBlockingReader(
        { url: url(), name: "w.1", log: silentLog },
        { key: ready, commands: redis },
      );
      try {
        await whenReady(reader, AbortSignal.timeout(60_000));
        const reading = waitForNew(reader, "w.1", lanesByKey([lane]), 1, BLOCK_MS);
        const blocked = async () => {
          const infos = await Promise.all(mastersOf(redis).map((master) => master.info("clients")));
          return infos.some((info) => /^blocked_clients:1\r$/m.test(info));
        };
        await expect.poll(blocked).toBe(true);
        const [admission] = await admit(redis, { gateway: "gw", limits: LIMITS }, [applicant(lane, "r1", "body")]);
        expect(admission).toEqual({ said: "admitted" });
        const { deliveries } = await reading;
        expect(deliveries.map(({ request }) => request)).toEqual(["r1"]);
        const settlements = deliveries.map((delivery) => result(delivery, { action: "drop" }));
        expect(await commitRequests({ redis, consumer: "w.1" }, settlements)).toEqual(["committed"]);
      } finally {
        reader.disconnect();
      }
    }
    expect(slots.size).toBe(3);
    redis.disconnect();
  });

  it("leads to scripts that the servers have forgotten", async () => {
    const redis = connectRedis({ url: url(), name: "gw", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(60_000));
    for (const lane of lanes(5, "forgotten")) {
      await Promise.all(mastersOf(redis).map((master) => master.script("FLUSH")));
      const [admission] = await admit(redis, { gateway: "gw", limits: LIMITS }, [applicant(lane, "r1", "body")]);
      expect(admission).toEqual({ said: "admitted" });
    }
    redis.disconnect();
  });
});
