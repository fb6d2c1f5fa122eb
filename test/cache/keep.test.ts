/** What the cache keeps in a real Redis and for how long, and requests without that Redis. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { keepAnswer } from "#shared/queue/cache/keep.js";
import { lookUp, type HitOwner, type LookedUp } from "#shared/queue/cache/look-up.js";
import { cacheKeys, spentKey, usageKey } from "#shared/queue/keys.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import type { Tensor } from "#shared/frame.js";
import { QueueLoads } from "../../gateway/admission/loads.js";
import type { Inference, InferenceOutcome, InferenceRequest } from "../../gateway/admission/inference.js";
import { AnswerCache } from "../../gateway/cache/answer-cache.js";
import { servedModel } from "../fixtures/served-models.js";
import { startRedis, type RedisServer } from "../support/brokers/redis.js";
import { startRedisCluster, type RedisCluster } from "../support/brokers/redis-cluster.js";
import { LIMITS } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";
import { until } from "../support/until.js";

async function connect(url: string): Promise<RedisClient> {
  const redis = connectRedis({ url, name: "cache", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
  return redis;
}

let server: RedisServer;
let redis: RedisClient;
beforeAll(async () => {
  server = await startRedis();
  redis = await connect(server.url);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

const { used, bytes } = cacheKeys(undefined);
const place = (digest: string, bucket = 0) => ({ digest, bucket });
/** Bytes that an answer of 1,000 bytes counts as. */
const ONE = 1_400;
const answer = Buffer.alloc(1_000, "a");
const keep = (digest: string, mostBytes = 10 * ONE, ttlMs = 60_000, body = answer) =>
  keepAnswer(redis, place(digest), body, { mostBytes, ttlMs });
const find = async (digest: string, owner?: HitOwner): Promise<LookedUp["said"]> =>
  (await lookUp(redis, place(digest), owner)).said;
const digests = (count: number): string[] => Array.from({ length: count }, (_, i) => `d${i}`);

describe("the cache in Redis", () => {
  it("drops what was not used for the longest time, and never has more bytes than it may", async () => {
    for (const digest of digests(10)) expect(await keep(digest)).toBe("kept");
    await until(async () => (await find("d0")) === "hit" && (await isNewest("d0")));
    for (const digest of ["e1", "e2", "e3"]) {
      expect(await keep(digest)).toBe("kept");
      expect(Number(await redis.get(bytes))).toBe(10 * ONE);
    }
    const names = [...digests(10), "e1", "e2", "e3"];
    const found = await Promise.all(names.map((name) => find(name)));
    // d0 was used lately.
    const gone = ["d1", "d2", "d3"];
    expect(found).toEqual(names.map((name) => (gone.includes(name) ? "miss" : "hit")));
    expect(await redis.zcard(used)).toBe(10);
    // A larger one makes room for itself, and one that is too large finds none.
    expect(await keep("large", 10 * ONE, 60_000, Buffer.alloc(5 * ONE))).toBe("kept");
    expect(Number(await redis.get(bytes))).toBeLessThanOrEqual(10 * ONE);
    expect(await keep("too-large", 10 * ONE, 60_000, Buffer.alloc(10 * ONE))).toBe("no-room");
    expect(await find("too-large")).toBe("miss");
  });

  /** Whether an answer is the last to go. Uses within a millisecond have no order. */
  const isNewest = async (digest: string) => {
    const [last, before] = await redis.zrevrange(used, 0, 1, "WITHSCORES").then((rows) => [rows.slice(0, 2), rows[3]]);
    return last?.[0]?.startsWith(`${digest}:`) === true && last[1] !== before;
  };

  it("keeps the first of two equal answers, for its time and no longer", async () => {
    expect(await keep("d", undefined, 60_000)).toBe("kept");
    expect(await keep("d", undefined, 600_000, Buffer.from("other"))).toBe("known");
    expect(await lookUp(redis, place("d"), undefined)).toEqual({ said: "hit", answer, rates: undefined });
    expect(await redis.pttl(`${used}:d`)).toBeLessThanOrEqual(60_000);
    await redis.flushall();
    await keep("short", undefined, 50);
    await until(async () => (await find("short")) === "miss");
    // All that belongs to it goes, too, with it or with the next answer.
    await keep("next", undefined, 50);
    expect([await redis.zcard(used), await redis.get(bytes)]).toEqual([1, String(ONE)]);
    await until(async () => (await redis.dbsize()) === 0);
  });

  it("writes nothing to the append-only file", async () => {
    const size = async () => Number(/aof_current_size:(\d+)/.exec(await redis.info("persistence"))?.[1]);
    const before = await size();
    await keep("d", 1_000_000, 60_000, Buffer.alloc(100_000));
    for (let i = 0; i < 10; i++) expect(await find("d")).toBe("hit");
    expect(await size()).toBe(before);
  });

  it("charges a hit alone to its owner, and only as long as the owner may send", async () => {
    const rate = { name: "k:me", periodUs: 1e9, burst: 2 };
    const quota = { name: "t:us", field: "requests", most: 4 } as const;
    const usage = { key: "me", counts: 1, of: "{0}:m:us", bytesIn: 7, keptMs: 86_400_000 } as const;
    const owner: HitOwner = { rates: [rate], quotas: [quota], usage };
    expect(await find("d", owner)).toBe("miss");
    await keep("d");
    expect(await lookUp(redis, place("d"), owner)).toMatchObject({ rates: [{ name: "k:me", remaining: 1 }] });
    expect([await find("d", owner), await find("d", owner), await find("d", owner)]).toEqual(["hit", "held", "held"]);
    const unrated = { ...owner, rates: [] };
    expect([await find("d", unrated), await find("d", unrated), await find("d", unrated)]).toEqual([
      "hit",
      "hit",
      "held",
    ]);
    expect(await find("d", { ...unrated, usage: { ...usage, counts: 0 } })).toBe("hit");
    const day = new Date().toISOString().slice(0, 10);
    const [row = ""] = Object.values(await redis.hgetall(usageKey("load:all", "us", day)));
    // Requests, steps, tokens in and out, µs, bytes in and out, refusals.
    expect(row).toBe(`4 0 0 0 0 ${5 * 7} ${5 * answer.length} 0`);
    expect(await redis.hlen(spentKey("load:all", day.slice(0, 7)))).toBe(2);
  });
});

/** An inference that counts its runs. */
class Runs implements Inference {
  count = 0;
  readonly #outcome: InferenceOutcome;

  constructor(outcome: InferenceOutcome) {
    this.#outcome = outcome;
  }

  infer(): Promise<InferenceOutcome> {
    this.count++;
    return Promise.resolve(this.#outcome);
  }

  inferLater = () => Promise.reject(new Error("not asked for"));
  generate = () => Promise.reject(new Error("not asked for"));
}

const tensor = (data: Buffer): Tensor => ({ name: "OUTPUT0", datatype: "INT32", shape: [data.length / 4], data });
const resultOf = (size: number): InferenceOutcome => ({
  kind: "result",
  tensors: [tensor(Buffer.alloc(size, 1))],
  version: "1",
});

function request(text: string): InferenceRequest {
  const made: InferenceRequest = {
    model: servedModel("m"),
    tenant: "default",
    sequence: undefined,
    idempotencyKey: undefined,
    deadlineMs: 60_000,
    under: () => made,
    inputs: [tensor(Buffer.from(text))],
    outputs: ["OUTPUT0"],
    parameters: {},
  };
  return made;
}

function cacheOf(client: RedisClient, { buckets = 1, mostBytes = 100_000 } = {}): AnswerCache {
  const shares = new QueueLoads({ redis: client, limits: LIMITS, buckets, log: silentLog });
  return new AnswerCache({
    redis: client,
    forLarge: client,
    buckets,
    shares,
    usageDays: 1,
    mostBytes,
    ttlMs: 60_000,
  });
}

describe("a request beside the cache", () => {
  let client: RedisClient;
  beforeEach(async () => (client = await connect(server.url)));
  afterEach(() => client.disconnect());

  it("is answered with the result of the run before, and with no error", async () => {
    const cache = cacheOf(client);
    const right = new Runs(resultOf(64));
    const first = await cache.infer(request("same"), right);
    await until(async () => (await redis.zcard(used)) === 1);
    expect(await cache.infer(request("same"), right)).toEqual(first);
    await cache.infer(request("else"), right);
    expect(right.count).toBe(2);
    const wrong = new Runs({ kind: "error", code: "internal", message: "no" });
    for (let i = 0; i < 3; i++) expect(await cache.infer(request("fail"), wrong)).toMatchObject({ kind: "error" });
    expect(wrong.count).toBe(3);
    await until(async () => (await redis.zcard(used)) === 2);
  });

  it("runs each time if its answer is more than an eighth of all", async () => {
    const cache = cacheOf(client, { mostBytes: 80_000 });
    const large = new Runs(resultOf(10_004));
    for (let i = 0; i < 3; i++) await cache.infer(request("large"), large);
    await cache.infer(request("small"), new Runs(resultOf(10_000)));
    await until(async () => (await redis.zcard(used)) === 1);
    expect(large.count).toBe(3);
  });

  it("runs while Redis is full, frozen or dead, and is found again later", async () => {
    const runs = new Runs(resultOf(64));
    const text = randomUUID();
    /** A cache that has not rested yet. */
    const ask = (cache = cacheOf(client)) => cache.infer(request(text), runs);
    await ask();
    await until(async () => (await redis.zcard(used)) === 1);
    await redis.config("SET", "maxmemory", "1");
    expect(await ask()).toMatchObject({ kind: "result" });
    await redis.config("SET", "maxmemory", "0");
    expect(runs.count).toBe(2);
    server.freeze();
    const resting = cacheOf(client);
    // The first request waits for a moment, and the others do not even ask.
    for (let i = 0; i < 100; i++) expect(await ask(resting)).toMatchObject({ kind: "result" });
    server.thaw();
    expect(runs.count).toBe(102);
    await until(async () => (await redis.ping()) === "PONG");
    await server.kill();
    expect(await ask()).toMatchObject({ kind: "result" });
    expect(runs.count).toBe(103);
    await server.restart();
    await Promise.all([redis, client].map((one) => whenReady(one, AbortSignal.timeout(60_000))));
    // The server has lost the answer.
    const cache = cacheOf(client);
    await until(async () => {
      const before = runs.count;
      await ask(cache);
      return runs.count === before;
    });
  });
});

describe("the cache in a Cluster", () => {
  const BUCKETS = 4;
  let cluster: RedisCluster;
  let one: RedisClient;
  let other: RedisClient;
  beforeAll(async () => {
    cluster = await startRedisCluster();
    [one, other] = await Promise.all([connect(cluster.url), connect(cluster.url)]);
  });
  afterAll(async () => {
    one.disconnect();
    other.disconnect();
    await cluster.dispose();
  });

  it("spreads over the buckets, each with its part of the bytes", { timeout: 60_000 }, async () => {
    const mostBytes = BUCKETS * 8 * ONE;
    const runs = new Runs(resultOf(1_000));
    const [first, second] = [one, other].map((client) => cacheOf(client, { buckets: BUCKETS, mostBytes }));
    for (let i = 0; i < 64; i++) await first?.infer(request(`text ${i}`.padEnd(8)), runs);
    const sums = () =>
      Promise.all(Array.from({ length: BUCKETS }, async (_, bucket) => Number(await one.get(cacheKeys(bucket).bytes))));
    // An answer has less than a hundred bytes beside its tensors.
    await until(async () => (await sums()).every((sum) => sum > 7 * ONE && sum <= 8 * ONE));
    const before = runs.count;
    // The newest come first. Each answer that has gone makes another go when it is back, and uses
    // within a millisecond have no order.
    for (let i = 63; i >= 0; i--) await second?.infer(request(`text ${i}`.padEnd(8)), runs);
    const hits = 64 - (runs.count - before);
    expect(hits).toBeGreaterThan(BUCKETS * 4);
    expect(hits).toBeLessThanOrEqual(BUCKETS * 8);
  });
});
