/**
 * The durability mode `replicated`: a change without a replica's confirmation counts neither as
 * done nor as refused.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import type { NumberedCall } from "#shared/queue/admission/admit.js";
import type { Lane } from "#shared/queue/address.js";
import { laneKeys, outcomeKey, versionKey } from "#shared/queue/keys.js";
import { readLogs } from "#shared/queue/admission/read-logs.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { commitRequests } from "#shared/queue/work/commit/commit-requests.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { UnconfirmedError } from "#shared/redis/replicated.js";
import { refusesWrites, retrying } from "#shared/retry.js";
import { OutcomeReader } from "../../gateway/outcomes/outcome-reader.js";
import { infoOf, onlineReplicas, settled, startRedisNode, type RedisNode } from "../support/brokers/redis-node.js";
import { admit, applicant, LIMITS, oneLane, onlyCall, put, result, take } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";
import { readRecord } from "#shared/queue/pieces/outcome.js";
import { factsOf } from "../support/queue/facts.js";

let folder: string;
let primary: RedisNode;
let replica: RedisNode;
const open: RedisClient[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "baton-replicated-"));
  // Redis itself refuses writes only after a replica has been silent for a minute here.
  const settings = { "min-replicas-to-write": "1", "min-replicas-max-lag": "60" };
  primary = await startRedisNode("primary", () => settings, folder);
  replica = await startRedisNode("replica", () => ({ replicaof: `127.0.0.1 ${primary.port}`, ...settings }), folder);
  await counted();
});
const counted = () => settled(async () => (await onlineReplicas(primary)) === 1);

/** The result of a call that a busy machine's replica confirmed in time. */
const confirmed = <T>(call: () => Promise<T>) => retrying(call, { budgetMs: 30_000 });
/** A repeated commit answers `already` after its confirmation. */
const committed = ["committed", "already"];

afterAll(async () => {
  for (const redis of open) redis.disconnect();
  await Promise.all([replica.dispose(), primary.dispose()]);
  rmSync(folder, { recursive: true, force: true });
});

async function connected(durability: "strict" | "replicated") {
  const redis = connectRedis({ url: `redis://127.0.0.1:${primary.port}`, name: "gw", durability, log: silentLog });
  open.push(redis);
  await whenReady(redis, AbortSignal.timeout(60_000));
  return redis;
}

describe("a call that accepts or ends work", () => {
  const lane: Lane = { bucket: 0, model: "m", version: "1", digest: "d" };
  let redis: RedisClient;
  let count = 0;
  let request: string;
  let call: NumberedCall;
  beforeEach(async () => {
    redis = await connected("replicated");
    request = `r${count++}`;
    call = onlyCall();
    await createGroup(redis, lane);
  });
  /** Sends a copy of the test's call. */
  const admitted = (by: RedisClient) =>
    admit(by, { gateway: "gw", limits: LIMITS }, [applicant(lane, request, "body")], call);

  it("is done when a replica has it", async () => {
    expect(await confirmed(() => admitted(redis))).toEqual([{ said: "admitted" }]);
    const { ready } = laneKeys(lane);
    expect(await replica.admin.xlen(ready)).toBe(await redis.xlen(ready));
    const queue = oneLane(redis, lane, "w.1");
    const deliveries = await take(queue);
    const settlements = deliveries.map((delivery) => result(delivery, { action: "drop" }));
    expect(committed).toContain(String(await confirmed(() => commitRequests(queue, settlements))));
  });

  it("is done when a replica has its checkpoint, too, which is written in one transaction with it", async () => {
    const step = { name: `default:${request}`, start: true, end: false };
    const first = { ...applicant(lane, request, "body"), sequence: step };
    await confirmed(() => admit(redis, { gateway: "gw", limits: LIMITS }, [first], call));
    const queue = oneLane(redis, lane, "w.1");
    const settlements = (await take(queue)).map((delivery) => result(delivery, put("state")));
    await redis.script("FLUSH");
    expect(committed).toContain(String(await confirmed(() => commit(queue, settlements, 60_000))));
    const key = versionKey(lane, step.name, (await factsOf(replica.admin, lane, step.name))?.at ?? "");
    expect(await replica.admin.get(key)).toBe("state");
    replica.freeze();
    try {
      await expect(commit(queue, settlements, 60_000)).rejects.toThrow(UnconfirmedError);
    } finally {
      replica.thaw();
    }
  });

  it("is unknown while no replica answers, to whoever repeats it, and done when one is back", async () => {
    replica.freeze();
    try {
      await expect(admitted(redis)).rejects.toThrow(UnconfirmedError);
      // The primary has the request, and would say so without asking for a replica.
      expect(await admitted(await connected("strict"))).toEqual([{ said: "admitted" }]);
      // A repeated call writes nothing, and must still wait for a confirmation.
      await expect(admitted(redis)).rejects.toThrow(UnconfirmedError);
      await expect(admitted(await connected("replicated"))).rejects.toThrow(UnconfirmedError);
      const repeated = confirmed(() => admitted(redis));
      replica.thaw();
      expect(await repeated).toEqual([{ said: "admitted" }]);
      expect(await take(oneLane(redis, lane, "w.1"))).toHaveLength(1);
    } finally {
      replica.thaw();
    }
  });

  it("is told to nobody before a replica has it, whoever looks it up", async () => {
    await confirmed(() => admitted(redis));
    const address = { bucket: 0, model: "m", tenant: DEFAULT_TENANT, request };
    const deliveries = await take(oneLane(redis, lane, "w.1"));
    const found: string[] = [];
    const reader = new OutcomeReader(redis, {
      ended: (_, { kind }) => found.push(kind),
      stillOpen: () => found.push("open"),
      lost: () => found.push("lost"),
      notRead: () => found.push("not read"),
    });
    const look = async () => {
      await reader.look([{ key: outcomeKey(address), admitted: true }]);
      await reader.idle();
      return found.splice(0);
    };
    replica.freeze();
    try {
      const settlements = deliveries.map((delivery) => result(delivery, { action: "drop" }));
      // The worker's call has run, but the worker does not know yet whether a replica has the
      // result.
      expect(await commitRequests(oneLane(await connected("strict"), lane, "w.1"), settlements)).toEqual(["committed"]);
      expect(await look()).toEqual(["not read"]);
      await expect(readRecord(redis, address)).rejects.toThrow(UnconfirmedError);
      await expect(readLogs(redis, [{ ...address, from: 0 }])).rejects.toThrow(UnconfirmedError);
    } finally {
      replica.thaw();
    }
    await expect.poll(look).toEqual(["result"]);
    expect(await confirmed(() => readRecord(redis, address))).toMatchObject({ kind: "result" });
  });

  it("holds up the connection once, however many look it up at a time", async () => {
    await confirmed(() => admitted(redis));
    const address = { bucket: 0, model: "m", tenant: DEFAULT_TENANT, request };
    const lookUp = async () => {
      const all = await Promise.allSettled(Array.from({ length: 60 }, () => readRecord(redis, address)));
      return new Set(
        all.map((one) => (one.status === "fulfilled" ? one.value !== undefined : (one.reason as unknown))),
      );
    };
    replica.freeze();
    try {
      expect(await admitted(await connected("strict"))).toEqual([{ said: "admitted" }]);
      await primary.admin.set("written", "later");
      // Sixty waits in a row would outlast the time limit of a command.
      for (const said of await lookUp()) expect(said).toBeInstanceOf(UnconfirmedError);
      expect(await redis.ping()).toBe("PONG");
    } finally {
      replica.thaw();
    }
    await expect.poll(async () => [...(await lookUp())]).toEqual([true]);
  });

  it("is refused by Redis once the replica counts as gone, and has not run", async () => {
    await replica.kill();
    try {
      await expect.poll(() => infoOf(primary.admin, "connected_slaves")).toBe("0");
      const error: unknown = await admitted(redis).catch((refused: unknown) => refused);
      expect(String(error)).toContain("NOREPLICAS");
      expect(refusesWrites(error)).toBe(true);
      expect(await redis.exists(outcomeKey({ bucket: 0, model: "m", tenant: DEFAULT_TENANT, request }))).toBe(0);
    } finally {
      await replica.restart();
    }
    expect(await confirmed(() => admitted(redis))).toEqual([{ said: "admitted" }]);
    await counted();
  });

  it("is sent as source to a server that has forgotten its scripts, and waits all the same", async () => {
    await redis.script("FLUSH");
    expect(await confirmed(() => admitted(redis))).toEqual([{ said: "admitted" }]);
    await redis.script("FLUSH");
    replica.freeze();
    try {
      await expect(admitted(redis)).rejects.toThrow(UnconfirmedError);
    } finally {
      replica.thaw();
    }
  });
});
