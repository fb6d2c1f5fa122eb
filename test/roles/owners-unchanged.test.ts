/**
 * A gateway with `BATON_ADMIN_API=off` works as a user of Redis that cannot change keys and
 * tenants.
 */
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { aclFile } from "#shared/redis/roles.js";
import { ownerKeys } from "#shared/queue/keys.js";
import { scopes } from "../../gateway/auth/owner/scopes.js";
import { useKeyedFleet } from "../auth/keyed.js";
import { ask, simpleBody } from "../jobs/ask.js";
import { refusalsOf, urlAs } from "../support/brokers/redis-users.js";

const { served, make } = useKeyedFleet({ models: ["simple"], direct: true, env: { BATON_ADMIN_API: "off" } });

it("serves keys and notes their uses, and cannot make a key by itself", async () => {
  const { fleet, redis } = served;
  const [gateway = ""] = aclFile(() => [], false).split("\n");
  const rights = gateway.split(" ").filter((word) => /^[~%]/.test(word));
  await redis.call("ACL", "SETUSER", "gateway", "resetkeys", ...rights);
  const key = await make({ scopes });
  const { headers } = key;
  const infer = await ask(`${served.url}/v2/models/simple/infer`, { body: simpleBody(1), headers });
  expect(infer.status).toBe(200);
  expect((await ask(`${served.url}/v2/keys`, { headers })).status).toBe(200);
  expect((await ask(`${served.url}/v2/keys`, { body: { tenant: "acme" }, headers })).status).toBe(501);
  for (const { member } of fleet.gateways) await member.terminate(30_000);
  expect(Number(await redis.hget(ownerKeys.used, key.id))).toBeGreaterThan(0);
  expect(await refusalsOf(redis)).toEqual([]);

  const intruder = new Redis(urlAs("gateway", fleet.redis.url), { protocol: 2 });
  const changes = [
    intruder.hset(ownerKeys.key("0123456789ab"), "text", "{}"),
    intruder.del(ownerKeys.key(key.id)),
    intruder.xadd(ownerKeys.changes, "*", "key", key.id),
    intruder.set(ownerKeys.tenant("acme"), "{}"),
  ];
  const refused = {
    status: "rejected",
    reason: expect.objectContaining({ message: expect.stringContaining("NOPERM") as string }) as Error,
  };
  expect(await Promise.allSettled(changes)).toEqual(changes.map(() => refused));
  intruder.disconnect();
  // These refusals are the test's own.
  await redis.call("ACL", "LOG", "RESET");
});
