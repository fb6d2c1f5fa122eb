/** A Redis that breaks a promise of the settings is refused or reported, in words. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Durability } from "#shared/durability.js";
import { UnusableError } from "#shared/exit.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { checkServer } from "#shared/redis/server.js";
import { startFleet } from "../support/fleet/fleet.js";
import { startRedisNode, type RedisNode } from "../support/brokers/redis-node.js";
import { silentLog } from "../support/silent.js";

let folder: string;
let server: RedisNode;
const open: RedisClient[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "baton-server-"));
  server = await startRedisNode("redis", () => ({}), folder);
});
afterEach(async () => {
  for (const redis of open.splice(0)) redis.disconnect();
  await server.admin.config("SET", "appendfsync", "always");
  await server.admin.config("SET", "maxmemory-policy", "noeviction");
});
afterAll(async () => {
  await server.dispose();
  rmSync(folder, { recursive: true, force: true });
});

async function checked({ port }: RedisNode = server, durability: Durability = "strict", log = silentLog, user = "") {
  const redis = connectRedis({ url: `redis://${user}127.0.0.1:${port}`, name: "checker", durability, log });
  open.push(redis);
  await whenReady(redis, AbortSignal.timeout(60_000));
  await checkServer(redis, log);
  return redis;
}

/** The lines of the returned log. */
function linesOf() {
  const lines: { level: number; msg: string; warning?: string; refusal?: string; durability?: string }[] = [];
  const sink = new Writable({
    write(line: Buffer, _encoding, done) {
      lines.push(JSON.parse(line.toString()) as (typeof lines)[number]);
      done();
    },
  });
  return { lines, log: pino(sink) };
}

describe("the check of a server", () => {
  it("says the mode in which it runs", async () => {
    const { lines, log } = linesOf();
    await server.admin.acl("SETUSER", "worker", "resetpass", ">secret");
    await checked(server, "strict", log, "worker:secret@");
    expect(lines).toMatchObject([{ level: 30, msg: "redis checked", durability: "strict" }]);
  });

  it("warns once of a user that may do everything", async () => {
    const { lines, log } = linesOf();
    await checked(server, "strict", log);
    const warned = "this process may do everything in redis: `npm run keys -- acl` makes users for each role";
    expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
      [40, warned],
      [30, "redis checked"],
    ]);
  });

  it.each([
    ["strict", "appendfsync", "everysec", "BATON_DURABILITY is strict, but Redis has appendfsync everysec"],
    ["fast", "appendfsync", "no", "BATON_DURABILITY is fast, but Redis has appendfsync no"],
    ["replicated", "appendfsync", "always", "BATON_DURABILITY is replicated, but Redis has min-replicas-to-write 0"],
    ["strict", "maxmemory-policy", "allkeys-lru", "Redis has maxmemory-policy allkeys-lru"],
  ] as const)("refuses %s with %s %s", async (durability, name, value, words) => {
    await server.admin.config("SET", name, value);
    const refused: unknown = await checked(server, durability).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(UnusableError);
    expect(String(refused)).toContain(words);
  });

  it("warns where the server does not tell its settings, as managed ones do", async () => {
    await server.admin.acl("SETUSER", "managed", "on", ">secret", "~*", "&*", "+@all", "-config");
    await server.admin.config("SET", "appendfsync", "everysec");
    const { lines, log } = linesOf();
    await checked(server, "strict", log, "managed:secret@");
    expect(lines.find(({ level }) => level === 40)?.warning).toContain("it refuses CONFIG GET");
  });

  it("reports a server that no longer fits when the connection is back", async () => {
    const { lines, log } = linesOf();
    const redis = await checked(server, "strict", log);
    await server.admin.config("SET", "appendfsync", "everysec");
    redis.disconnect(true);
    await expect.poll(() => lines.find(({ level }) => level === 50)?.refusal).toContain("appendfsync everysec");
  });

  it("refuses a node of a Cluster behind the URL of one server", async () => {
    const node = await startRedisNode("node", () => ({ "cluster-enabled": "yes" }), folder);
    try {
      await expect(checked(node)).rejects.toThrow("set BATON_REDIS_URL to redis+cluster://host:port,host:port");
    } finally {
      await node.dispose();
    }
  });
});

describe("a process", () => {
  it.each([
    ["bundled/gateway/main.js", { BATON_DURABILITY: "replicated" }, "min-replicas-to-write"],
    ["worker/supervisor.js", { BATON_DURABILITY: "replicated" }, "min-replicas-to-write"],
  ])("of %s with %o ends for good where Redis does not fit", async (entry, env, words) => {
    const fleet = await startFleet({ gateways: 0, workers: 0, models: ["simple"] });
    try {
      const process = fleet.launch(entry, { BATON_HTTP_PORT: "0", ...env });
      const { fields } = await process.waitForLine("cannot start", (line) => line.fields["level"] === 60);
      expect(fields["error"]).toContain(words);
      expect(await process.exited).toEqual({ code: 78, signal: null });
    } finally {
      await fleet.dispose();
    }
  });
});
