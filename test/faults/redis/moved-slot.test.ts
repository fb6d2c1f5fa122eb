/**
 * A slot of a Cluster is moved to another master, key by key, while requests of its bucket are
 * admitted, read and committed.
 */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { slotOf } from "#shared/redis/slots.js";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { freePort } from "../../support/brokers/port.js";
import { startRedisCluster, type RedisCluster } from "../../support/brokers/redis-cluster.js";
import { settled, type RedisNode } from "../../support/brokers/redis-node.js";
import { until } from "../../support/until.js";
import { NumberedClients } from "./numbered-load.js";

const BUCKETS = 16;
const PATIENCE_MS = 90_000;
const full = process.env["BATON_FULL"] === "1";
/** How many buckets are moved, one after the other. */
const MOVED = full ? BUCKETS : 4;
/** The pause before the next key is moved: requests come in between. */
const BETWEEN_MS = 20;
const STEPS = full ? 160 : 60;
const SEQUENCES = 16;

let cluster: RedisCluster;
let fleet: Fleet;
const urls: string[] = [];
beforeAll(async () => {
  cluster = await startRedisCluster();
  fleet = await startFleet({ gateways: 0, workers: 0, models: ["accumulate"] });
  const env = { BATON_REDIS_URL: cluster.url, BATON_BUCKETS: String(BUCKETS) };
  for (let i = 0; i < 2; i++) {
    const port = String(await freePort());
    urls.push(`http://127.0.0.1:${port}`);
    fleet.launch("bundled/gateway/main.js", { ...env, BATON_HOST: "127.0.0.1", BATON_HTTP_PORT: port });
    fleet.launch("worker/supervisor.js", env);
  }
  for (const url of urls) {
    await until(
      async () => (await fetch(`${url}/v2/models/accumulate/ready`).catch(() => undefined))?.ok === true,
      PATIENCE_MS,
    );
  }
}, 240_000);
afterAll(async () => {
  await fleet.dispose();
  await cluster.dispose();
});

const idOf = ({ admin }: RedisNode) => admin.cluster("MYID");

/**
 * Moves a slot as an operator's tool does, but one key at a time. The ready streams move first, or
 * last: the keys that calls name are then at one master, and most other keys of their scripts at
 * the other.
 */
async function moveSlot(slot: number, from: RedisNode, to: RedisNode, readyFirst: boolean): Promise<number> {
  const [source, target] = [await idOf(from), await idOf(to)];
  await to.admin.cluster("SETSLOT", slot, "IMPORTING", source);
  await from.admin.cluster("SETSLOT", slot, "MIGRATING", target);
  let moved = 0;
  for (;;) {
    const keys = await from.admin.cluster("GETKEYSINSLOT", slot, 1_000);
    const key = keys.find((key) => /^(ready|calls):/.test(key) === readyFirst) ?? keys[0];
    if (key === undefined) break;
    // A key that expires meanwhile answers NOKEY and was not moved.
    await from.admin.call("MIGRATE", "127.0.0.1", to.port, key, 0, 5_000);
    moved++;
    await pause(BETWEEN_MS);
  }
  for (const node of [to, from, ...(await cluster.mastersNow())]) {
    await node.admin.cluster("SETSLOT", slot, "NODE", target);
  }
  return moved;
}

/** Whether sequences lie in the bucket. */
async function isUsed(slot: number, { admin }: RedisNode): Promise<boolean> {
  const keys = await admin.cluster("GETKEYSINSLOT", slot, 1_000);
  return keys.some((key) => key.startsWith("seqs:"));
}

it(
  "loses and doubles no step of its bucket, which goes on at the other master",
  { timeout: full ? 900_000 : 240_000 },
  async () => {
    const load = { urls, sequences: SEQUENCES, steps: STEPS, patienceMs: PATIENCE_MS, restMs: 20 };
    const clients = new NumberedClients(load);
    const running = clients.run();
    await clients.further(3);
    let moved = 0;
    let slots = 0;
    for (let bucket = 0; bucket < BUCKETS && slots < MOVED; bucket++) {
      const key = bucketTag(bucket);
      const from = await cluster.masterOf(key);
      if (!(await isUsed(slotOf(key), from))) continue;
      const to = (await cluster.mastersNow()).find((node) => node !== from);
      if (to === undefined) throw new Error("the Cluster has one master");
      moved += await moveSlot(slotOf(key), from, to, slots++ % 2 === 0);
      await settled(async () => (await cluster.masterOf(key)) === to);
      await clients.further(3);
    }
    const seen = await running;
    console.log(JSON.stringify({ slots, moved, ...seen }));
    expect(seen.wrong).toEqual([]);
    expect(seen).toMatchObject({ lost: 0, toldStart: 0, acknowledged: SEQUENCES * STEPS });
    expect(slots).toBeGreaterThan(1);
  },
);
