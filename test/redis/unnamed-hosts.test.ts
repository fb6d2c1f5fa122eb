/**
 * Clusters whose nodes announce only ports, without a host: clients connect to the nodes at the
 * host that answered. The tests use 127.0.0.2, since a client may take 127.0.0.1 as its default
 * host.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Queue, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectForQueue, connectRedis, mastersOf, whenReady } from "#shared/redis/connect.js";
import { slotOf } from "#shared/redis/slots.js";
import { add } from "../edition/ask.js";
import { accepted, ended, simpleBody } from "../jobs/ask.js";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";
import { freePort } from "../support/brokers/port.js";
import { startLoneMaster, startRedisCluster, type RedisCluster } from "../support/brokers/redis-cluster.js";
import type { RedisNode } from "../support/brokers/redis-node.js";
import { silentLog } from "../support/silent.js";
import { until } from "../support/until.js";

const ASKED = "127.0.0.2";
const PATIENCE_MS = 60_000;

/** How nodes announce themselves: without a host, or with a host name that they do not have. */
describe.each(["unknown-endpoint", "hostname"])("a Cluster whose nodes name ports alone, as %s", (type) => {
  let cluster: RedisCluster;
  let url: string;
  beforeAll(async () => {
    cluster = await startRedisCluster({ bind: `127.0.0.1 ${ASKED}`, "cluster-preferred-endpoint-type": type });
    url = cluster.url.replaceAll("127.0.0.1", ASKED);
  });
  afterAll(() => cluster.dispose());

  async function opened() {
    const redis = connectRedis({ url, name: "gw", log: silentLog });
    const hosts = new Set<unknown>();
    redis.on("+node", ({ options }: Redis) => hosts.add(options.host));
    await whenReady(redis, AbortSignal.timeout(60_000));
    return { redis, hosts };
  }

  /** The master that has the key's slot, and another master, with the number of the slot. */
  async function around(key: string) {
    const from = await cluster.masterOf(key);
    const to = (await cluster.mastersNow()).find((node) => node !== from);
    if (to === undefined) throw new Error("the Cluster has one master");
    return {
      slot: slotOf(key),
      from,
      to,
      source: await from.admin.cluster("MYID"),
      target: await to.admin.cluster("MYID"),
    };
  }

  it("is found at the host that was asked", async () => {
    const { redis, hosts } = await opened();
    const found = mastersOf(redis).map(({ options }) => `${options.host}:${options.port}`);
    const masters = (await cluster.mastersNow()).map(({ port }) => `${ASKED}:${port}`);
    expect(found.toSorted()).toEqual(masters.toSorted());
    expect([...hosts]).toEqual([ASKED]);
    redis.disconnect();
  });

  it("redirects to that host where a slot has moved", async () => {
    const { redis, hosts } = await opened();
    const { slot, from, to, target } = await around("moved");
    for (const { admin } of [to, from, ...(await cluster.mastersNow())])
      await admin.cluster("SETSLOT", slot, "NODE", target);
    expect(await redis.set("moved", "1")).toBe("OK");
    expect(await to.admin.cluster("COUNTKEYSINSLOT", slot)).toBe(1);
    expect([...hosts]).toEqual([ASKED]);
    redis.disconnect();
  });

  it("redirects to that host while a slot is being moved", async () => {
    const { redis, hosts } = await opened();
    const { slot, from, to, source, target } = await around("asked");
    await to.admin.cluster("SETSLOT", slot, "IMPORTING", source);
    await from.admin.cluster("SETSLOT", slot, "MIGRATING", target);
    expect(await redis.set("asked", "1")).toBe("OK");
    expect(await to.admin.cluster("COUNTKEYSINSLOT", slot)).toBe(1);
    for (const { admin } of [to, from]) await admin.cluster("SETSLOT", slot, "NODE", target);
    expect([...hosts]).toEqual([ASKED]);
    redis.disconnect();
  });

  it("has BullMQ's queues, with the copies of a connection that it makes", async () => {
    const connection = connectForQueue({ url, name: "jobs", log: silentLog });
    const queue = new Queue("q", { connection, prefix: "{unnamed}" });
    const worker = new Worker<unknown>("q", () => Promise.resolve(), { connection, prefix: "{unnamed}" });
    const seen = new Promise((resolve) => worker.on("completed", ({ data }) => resolve(data)));
    worker.on("error", () => undefined);
    await queue.add("job", { value: 1 });
    expect(await seen).toEqual({ value: 1 });
    await worker.close();
    await queue.close();
    connection.disconnect();
  });
});

describe("a fleet over a master that has met no other node", () => {
  let folder: string;
  let redis: RedisNode;
  let fleet: Fleet;
  let url: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "baton-lone-"));
    redis = await startLoneMaster("lone", folder);
    expect(await redis.admin.cluster("SLOTS")).toEqual([[0, 16_383, ["", redis.port, expect.any(String), []]]]);
    fleet = await startFleet({ gateways: 0, workers: 0, models: ["accumulate", "simple"] });
    const port = String(await freePort());
    url = `http://127.0.0.1:${port}`;
    const env = { BATON_REDIS_URL: `redis+cluster://${ASKED}:${redis.port}` };
    fleet.launch("bundled/gateway/main.js", { ...env, BATON_HOST: "127.0.0.1", BATON_HTTP_PORT: port });
    fleet.launch("bundled/gateway/jobs.js", env);
    fleet.launch("worker/supervisor.js", env);
    await until(
      async () => (await fetch(`${url}/v2/models/simple/ready`).catch(() => undefined))?.ok === true,
      PATIENCE_MS,
    );
  });
  afterAll(async () => {
    await fleet.dispose();
    await redis.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  it("serves sequences and runs jobs", { timeout: 120_000 }, async () => {
    const outputs: unknown[] = [];
    for (const value of [1, 2, 3]) outputs.push((await add(url, { sequence: 7, value, start: value === 1 })).output);
    expect(outputs).toEqual([1, 3, 6]);
    const { id } = await accepted(url, "simple", { infer: simpleBody(1) });
    expect(await ended(url, id)).toMatchObject({ state: "completed" });
  });
});
