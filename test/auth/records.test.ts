/** The records of keys in Redis change as a whole, leave one operator, and go without a trace. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Authenticator } from "../../gateway/auth/authenticator.js";
import { KeyUses } from "../../gateway/auth/key-uses.js";
import { Keys } from "../../gateway/auth/keys.js";
import { anyOwner } from "../../gateway/auth/owner/owner.js";
import { ownerKeys } from "#shared/queue/keys.js";
import { forgetSomeKeys } from "#shared/queue/owners/tidy.js";
import { readUses } from "#shared/queue/owners/uses.js";
import { writeKey, writeTenant } from "#shared/queue/owners/write-owner.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { startRedis, type RedisServer } from "../support/brokers/redis.js";
import { silentLog } from "../support/silent.js";

let server: RedisServer;
let redis: RedisClient;
beforeAll(async () => {
  server = await startRedis();
  redis = connectRedis({ url: server.url, name: "test", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

const DAY = 86_400_000;

describe("a record", () => {
  const key = { id: "k", tenant: "acme", operatorUntil: undefined };

  it("is made, changed and removed by the call that has read it", async () => {
    expect(await writeKey(redis, key, { from: undefined, to: "1" })).toBe("written");
    // The answer to an earlier copy of the call was lost.
    expect(await writeKey(redis, key, { from: undefined, to: "1" })).toBe("written");
    expect(await writeKey(redis, key, { from: undefined, to: "2" })).toBe("conflict");
    expect(await writeKey(redis, key, { from: "1", to: "2", ttlMs: DAY })).toBe("written");
    expect(await redis.get(ownerKeys.key("k"))).toBe("2");
    expect(await redis.pttl(ownerKeys.key("k"))).toBeGreaterThan(DAY / 2);
    expect([await redis.zscore(ownerKeys.ids, "k"), await redis.zscore(ownerKeys.idsOf("acme"), "k")]).toEqual([
      expect.any(String),
      expect.any(String),
    ]);
    expect(await writeKey(redis, key, { from: "2", to: undefined })).toBe("written");
    expect(await redis.exists(ownerKeys.key("k"), ownerKeys.ids, ownerKeys.idsOf("acme"))).toBe(0);
    expect(await writeTenant(redis, "acme", { from: undefined, to: "1" })).toBe(true);
    expect(await writeTenant(redis, "acme", { from: undefined, to: "2" })).toBe(false);
    const changes = await redis.xrange(ownerKeys.changes, "-", "+");
    expect(changes.map(([, fields]) => fields)).toEqual([
      ["c", "key:k"],
      ["c", "key:k"],
      ["c", "key:k"],
      ["c", "tenant:acme"],
    ]);
  });

  it("of the last operator that is good stays an operator's, unless the caller may take it", async () => {
    const now = Date.now();
    const write = (id: string, operatorUntil: number | undefined, change: object, spares?: "last") =>
      writeKey(redis, { id, tenant: "acme", operatorUntil }, { from: undefined, to: undefined, ...change }, spares);
    await write("one", Infinity, { to: "1" });
    await write("late", now - DAY, { to: "1" });
    await write("none", undefined, { to: "1" });
    expect(await write("one", undefined, { from: "1", to: "2" }, "last")).toBe("last");
    expect(await redis.get(ownerKeys.key("one"))).toBe("1");
    // An expired operator and another key are no help, and may go.
    expect(await write("late", undefined, { from: "1", to: "2" }, "last")).toBe("written");
    expect(await write("none", undefined, { from: "1", to: "2" }, "last")).toBe("written");
    await write("two", now + DAY, { to: "1" });
    expect(await write("one", undefined, { from: "1", to: "2" }, "last")).toBe("written");
    expect(await write("two", undefined, { from: "1", to: "2" }, "last")).toBe("last");
    expect(await write("two", undefined, { from: "1", to: "2" })).toBe("written");
    expect(await redis.exists(ownerKeys.operators)).toBe(0);
  });
});

it("a key whose record is gone leaves the lists as the tenant makes keys", async () => {
  const keys = new Keys({ redis, pepper: Buffer.alloc(32, 7) });
  const terms = { tenant: "tidy", name: "", scopes: [], models: [], livesMs: undefined, createdBy: undefined };
  const made = [await keys.make(terms), await keys.make(terms), await keys.make(terms)].map(({ record }) => record.id);
  const [gone = "", ...rest] = made;
  await redis.hset(ownerKeys.used, gone, 1, rest[0] ?? "", 2);
  await redis.del(ownerKeys.key(gone)); // as after 30 days
  expect((await keys.list("tidy")).map(({ id }) => id)).toEqual(rest.toReversed());
  await forgetSomeKeys(redis, "tidy");
  expect(await redis.zrange(ownerKeys.idsOf("tidy"), "0", "-1")).toEqual(expect.not.arrayContaining([gone]));
  expect(await redis.zscore(ownerKeys.ids, gone)).toBeNull();
  expect(await readUses(redis, [gone, rest[0] ?? "", "never"])).toEqual([undefined, 2, undefined]);
});

it("a gateway notes the keys that it has let in, and writes them together", async () => {
  const stopping = new AbortController();
  const owners = ["a", "b", undefined].map((keyId) => ({ ...anyOwner("acme"), keyId }));
  const authenticator: Pick<Authenticator, "judge"> = {
    judge: ({ target }) => {
      const owner = owners[Number(target)];
      if (owner === undefined) throw new Error("refused");
      return target === "1" ? Promise.resolve(owner) : owner;
    },
  };
  const uses = new KeyUses({ authenticator, redis, now: () => 5_000.5, log: silentLog });
  const watching = uses.watch(stopping.signal);
  for (const target of ["0", "1", "2", "0"]) await uses.judge({ authorization: [], apiKey: [], target });
  expect(() => uses.judge({ authorization: [], apiKey: [], target: "3" })).toThrow("refused");
  expect(await readUses(redis, ["a", "b"])).toEqual([undefined, undefined]);
  stopping.abort();
  await watching;
  expect(await readUses(redis, ["a", "b", "c"])).toEqual([5_000, 5_000, undefined]);
});
