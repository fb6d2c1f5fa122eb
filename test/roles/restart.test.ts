/** A Redis whose user `default` is off has everything again after a crash. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startOnlyUsers, urlAs } from "../support/brokers/redis-users.js";
import type { Broker } from "../support/brokers/broker.js";

let server: Broker;
beforeAll(async () => (server = await startOnlyUsers()));
afterAll(() => server.dispose());

async function asking<T>(role: "gateway" | "operator", ask: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(urlAs(role, `redis://127.0.0.1:${server.port}`), { protocol: 2 });
  try {
    return await ask(redis);
  } finally {
    redis.disconnect();
  }
}

it("keeps transactions and scripts, which Redis runs again as the user default", async () => {
  const nobody = new Redis({ port: server.port, protocol: 2, enableReadyCheck: false });
  await expect(nobody.get("x")).rejects.toThrow("NOAUTH");
  nobody.disconnect();
  const [alone, many, script] = ["out:{0}:m:a", "out:{0}:m:b", "out:{0}:m:c"];
  await asking("gateway", async (redis) => {
    await redis.set(alone, "1");
    await redis.multi().set(many, "2").hset("load:{0}", "all", "1 2").exec();
    await redis.eval(
      "redis.call('SET', KEYS[1], '3') redis.call('SADD', KEYS[2], 'x') return 1",
      2,
      script,
      "tenants:{0}",
    );
  });
  await server.kill();
  await server.restart();
  const found = await asking("gateway", async (redis) => [
    await Promise.all([alone, many, script].map((key) => redis.get(key))),
    await redis.hget("load:{0}", "all"),
    await redis.scard("tenants:{0}"),
  ]);
  expect(found).toEqual([["1", "2", "3"], "1 2", 1]);
  expect(await asking("operator", (redis) => redis.call("ACL", "LOG"))).toEqual([]);
});
