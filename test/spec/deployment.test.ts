/**
 * Settings on which all processes on one Redis must agree, and ids of requests that are hard to
 * guess.
 */
import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { UnusableError } from "#shared/exit.js";
import { bucketOf } from "#shared/queue/address.js";
import { registryKeys } from "#shared/queue/keys.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { joinDeployment, requireKeys } from "#shared/queue/deployment.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { startRedis, type RedisServer } from "../support/brokers/redis.js";
import { silentLog } from "../support/silent.js";

describe("the deployment record", () => {
  let server: RedisServer;
  let redis: RedisClient;
  const leaving = new AbortController();
  beforeAll(async () => {
    server = await startRedis();
    redis = connectRedis({ url: server.url, name: "test", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(60_000));
  });
  afterAll(async () => {
    leaving.abort();
    redis.disconnect();
    await server.dispose();
  });

  const joined = (buckets = 16) => joinDeployment({ redis, buckets, log: silentLog, signal: leaving.signal });

  it("has one secret for all that join at once, which outlives a restart of Redis", async () => {
    const members = await Promise.all(Array.from({ length: 8 }, () => joined()));
    const [secret] = members.map((member) => member.secret().toString("hex"));
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    await server.kill();
    await server.restart();
    await expect.poll(() => redis.status).toBe("ready");
    members.push(await joined());
    expect(new Set(members.map((member) => member.secret().toString("hex")))).toEqual(new Set([secret]));
  });

  it("is put back by running processes when Redis is emptied, so that they and newcomers agree", async () => {
    const before = await joined();
    const secret = before.secret();
    await redis.flushall();
    await expect.poll(() => redis.hgetBuffer(registryKeys.deployment, "secret")).toEqual(secret);
    const late = await joined();
    expect([late.secret(), before.secret()]).toEqual([secret, secret]);
  });

  it("refuses a gateway without keys beside gateways with keys", async () => {
    const join = (auth: "required" | "off" | undefined) =>
      joinDeployment({ redis, buckets: 16, auth, log: silentLog, signal: AbortSignal.abort() });
    await join("off");
    await join("required");
    await expect(join("off")).rejects.toThrow(/^This deployment asks for keys, and this gateway would let everybody/);
    await join(undefined);
    await requireKeys(redis, false);
    await join("off");
    // A gateway with keys that runs says it once, and not again.
    const running = new AbortController();
    await joinDeployment({ redis, buckets: 16, auth: "required", log: silentLog, signal: running.signal });
    await requireKeys(redis, false);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(await redis.hget(registryKeys.deployment, "auth")).toBeNull();
    running.abort();
    // Whichever process puts back a record that Redis has lost, it still asks for keys.
    await join("required");
    await joined();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await redis.del(registryKeys.deployment);
    await expect.poll(() => redis.hget(registryKeys.deployment, "auth")).toBe("required");
    await requireKeys(redis, false);
  });

  it("refuses a process with another number of buckets, in words", async () => {
    await expect(joined(4)).rejects.toThrow(UnusableError);
    await expect(joined(4)).rejects.toThrow(
      /^BATON_BUCKETS is 4 here, but 16 in the rest of this deployment\. Leave it unset, or set it to 16; .* \{registry\}:deployment from Redis$/,
    );
  });

  it("can be written in a full Redis, and read in one that refuses all writes", async () => {
    await redis.config("SET", "maxmemory", "1");
    await redis.del(registryKeys.deployment);
    await joined();
    await redis.config("SET", "maxmemory", "0");
    expect(await redis.hget(registryKeys.deployment, "buckets")).toBe("16");
    await redis.config("SET", "min-replicas-to-write", "1");
    await joined();
    await redis.config("SET", "min-replicas-to-write", "0");
  });
});

describe("the deployment record of a Redis of its own", () => {
  let server: RedisServer;
  let redis: RedisClient;
  beforeEach(async () => {
    server = await startRedis();
    redis = connectRedis({ url: server.url, name: "test", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(60_000));
  });
  afterEach(async () => {
    redis.disconnect();
    await server.dispose();
  });

  /** Joins, and does not check the record again. */
  const joined = (buckets?: number) => joinDeployment({ redis, buckets, log: silentLog, signal: AbortSignal.abort() });

  it("is refused where it is of an earlier format", async () => {
    await redis.hset(registryKeys.deployment, { shards: "1", secret: "s" });
    await expect(joined(16)).rejects.toThrow(UnusableError);
    await expect(joined(16)).rejects.toThrow(/whose keys have another format .* use an empty Redis$/);
  });

  it("gives its number to a process that is told none", async () => {
    const members = [await joined(4), await joined()];
    expect(members.map(({ buckets }) => buckets)).toEqual([4, 4]);
  });
});

describe("a fleet", () => {
  const served = useFleet({ gateways: 2, models: ["accumulate", "gen-cheap"], direct: true });

  const post = (gateway: number, path: string, body: object, headers: Record<string, string>) =>
    fetch(`${served.fleet.urls[gateway]}${path}`, { method: "POST", headers, body: JSON.stringify(body) });

  it("gives ids that a known key does not tell, and that every gateway finds again", async () => {
    const ask = async (gateway: number) => {
      const headers = { "idempotency-key": "order-1001", prefer: "respond-async" };
      const body = { text_input: "once", max_tokens: 3 };
      const answer = await post(gateway, "/v2/models/gen-cheap/generate", body, headers);
      return ((await answer.json()) as { id: string }).id;
    };
    const id = await ask(0);
    expect(await ask(1)).toBe(id);
    const hash = createHash("sha256")
      .update(JSON.stringify(["default", "gen-cheap", null, "order-1001"]))
      .digest();
    const request = hash.subarray(0, 16).toString("base64url");
    const guessed = `${request}.${bucketOf("gen-cheap", "default", request, 16)}.gen-cheap`;
    expect(id).not.toBe(guessed);
    const read = await fetch(`${served.url}/v2/requests/${guessed}`);
    const cancelled = await fetch(`${served.url}/v2/requests/${guessed}`, { method: "DELETE" });
    expect([read.status, cancelled.status]).toEqual([404, 404]);
  });

  it.each([
    [
      "bundled/gateway/main.js",
      { BATON_BUCKETS: "2", BATON_HTTP_PORT: "0" },
      "BATON_BUCKETS is 2 here, but 16 in the rest",
    ],
    [
      "worker/supervisor.js",
      { BATON_BUCKETS: "2", BATON_MODELS: "accumulate" },
      "BATON_BUCKETS is 2 here, but 16 in the rest",
    ],
  ])("refuses %s with %o for good", async (entry, env, words) => {
    const process = served.fleet.launch(entry, env);
    const { fields } = await process.waitForLine("cannot start", ({ fields }) => fields["level"] === 60);
    expect(fields["error"]).toContain(words);
    // A supervisor that started the worker again would never end.
    expect(await process.exited).toEqual({ code: 78, signal: null });
  });
});
