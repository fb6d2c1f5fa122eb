/**
 * What the processes over one Redis must agree on, and what keeps the ids of requests from being
 * guessed.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { UnusableError } from "#shared/exit.js";
import { registryKeys } from "#shared/keys.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { joinDeployment } from "#shared/redis/deployment.js";
import { startFleet, type Fleet } from "../setup/fleet.js";
import { startRedis, type RedisServer } from "../setup/redis.js";

const silent = pino({ level: "silent" });

describe("the deployment record", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-deployment-"));
  let server: RedisServer;
  let redis: RedisClient;
  const leaving = new AbortController();
  beforeAll(async () => {
    server = await startRedis(folder);
    redis = connectRedis({ url: server.url, name: "test", log: silent });
    await whenReady(redis, AbortSignal.timeout(10_000));
  });
  afterAll(async () => {
    leaving.abort();
    redis.disconnect();
    await server.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  const joined = (shards = 1) => joinDeployment({ redis, shards, log: silent, signal: leaving.signal });

  it("has one secret for all who join at once, which outlives a restart of Redis", async () => {
    const members = await Promise.all(Array.from({ length: 8 }, () => joined()));
    const [secret] = members.map((member) => member.secret().toString("hex"));
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    await server.kill();
    await server.restart();
    await expect.poll(() => redis.status).toBe("ready");
    members.push(await joined());
    expect(new Set(members.map((member) => member.secret().toString("hex")))).toEqual(new Set([secret]));
  });

  it("is put back by those who run when Redis is emptied, so that they and newcomers agree", async () => {
    const before = await joined();
    const secret = before.secret();
    await redis.flushall();
    await expect.poll(() => redis.hgetBuffer(registryKeys.deployment, "secret"), { timeout: 10_000 }).toEqual(secret);
    const late = await joined();
    expect([late.secret(), before.secret()]).toEqual([secret, secret]);
  });

  it("refuses who has other shards, in words", async () => {
    await expect(joined(4)).rejects.toThrow(UnusableError);
    await expect(joined(4)).rejects.toThrow(
      /^BATON_SHARDS is 4 here, but 1 in the rest of this deployment\. Set it to 1; .* \{registry\}:deployment from Redis$/,
    );
  });

  it("can be written in a full Redis, and read in one that refuses all writes", async () => {
    await redis.config("SET", "maxmemory", "1");
    await redis.del(registryKeys.deployment);
    await joined();
    await redis.config("SET", "maxmemory", "0");
    expect(await redis.hget(registryKeys.deployment, "shards")).toBe("1");
    await redis.config("SET", "min-replicas-to-write", "1");
    await joined();
    await redis.config("SET", "min-replicas-to-write", "0");
  });
});

describe("a fleet", () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet({ gateways: 2, workers: 1, models: ["accumulate", "gen-cheap"], direct: true });
    await fleet.whenServing();
  }, 120_000);
  afterAll(() => fleet.dispose());

  const post = (gateway: number, path: string, body: object, headers: Record<string, string>) =>
    fetch(`${fleet.urls[gateway]}${path}`, { method: "POST", headers, body: JSON.stringify(body) });

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
      .update(JSON.stringify(["default", "gen-cheap", "order-1001"]))
      .digest();
    const guessed = `${hash.subarray(0, 16).toString("base64url")}.0.1.gen-cheap`;
    expect(id).not.toBe(guessed);
    const read = await fetch(`${fleet.urls[0]}/v2/requests/${guessed}`);
    const cancelled = await fetch(`${fleet.urls[0]}/v2/requests/${guessed}`, { method: "DELETE" });
    expect([read.status, cancelled.status]).toEqual([404, 404]);
  });

  it.each([
    ["gateway/main.js", { BATON_SHARDS: "2", BATON_HTTP_PORT: "0" }, "BATON_SHARDS is 2 here, but 1 in the rest"],
    ["worker/main.js", { BATON_SHARDS: "2", BATON_MODELS: "accumulate" }, "BATON_SHARDS is 2 here, but 1 in the rest"],
    ["worker/main.js", { BATON_SHARDS: "2" }, "generators (gen-cheap) can only be served with BATON_SHARDS=1"],
  ])("refuses %s with %o for good", async (entry, env, words) => {
    const process = fleet.launch(entry, env);
    const { fields } = await process.waitForLine("cannot start", ({ fields }) => fields["level"] === 60);
    expect(fields["error"]).toContain(words);
    // A supervisor that started it again would never end.
    expect(await process.exited).toEqual({ code: 78, signal: null });
  });
});
