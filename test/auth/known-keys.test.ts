/** What a gateway knows of keys while Redis changes, is slow, is away, or has lost data. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Keys, type KeyTerms } from "../../gateway/auth/keys.js";
import { KnownKeys } from "../../gateway/auth/known-keys.js";
import { anyOwner } from "../../gateway/auth/owner/owner.js";
import { Caller } from "../../gateway/service/caller.js";
import { KeyService } from "../../gateway/service/keys.js";
import { InferenceError } from "#shared/errors.js";
import { writeTenant } from "#shared/queue/owners/write-owner.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { startRedis, type RedisServer } from "../support/brokers/redis.js";
import { Proxy } from "../support/fleet/proxy.js";
import { silentLog } from "../support/silent.js";
import { pepper, usualTerms } from "./keyed.js";

let server: RedisServer;
let proxy: Proxy;
let direct: RedisClient;
let redis: RedisClient;
let keys: Keys;
beforeAll(async () => {
  server = await startRedis();
  proxy = await Proxy.start(Number(new URL(server.url).port));
  direct = connectRedis({ url: server.url, name: "admin", log: silentLog });
  redis = connectRedis({ url: `redis://127.0.0.1:${proxy.port}`, name: "gateway", log: silentLog });
  await Promise.all([direct, redis].map((one) => whenReady(one, AbortSignal.timeout(60_000))));
  keys = new Keys({ redis: direct, pepper });
});
afterAll(async () => {
  direct.disconnect();
  redis.disconnect();
  await proxy.dispose();
  await server.dispose();
});

let stopping: AbortController;
let following: Promise<void> | undefined;
let known: KnownKeys;
const follow = (terms: { staleMs?: number; graceMs?: number } = {}): void => {
  known = new KnownKeys({ redis, staleMs: 5_000, graceMs: 60_000, log: silentLog, ...terms });
  following = known.follow(stopping.signal);
};
beforeEach(() => (stopping = new AbortController()));
afterEach(async () => {
  proxy.heal();
  stopping.abort();
  await following;
});

const make = async (terms: Partial<KeyTerms> = {}): Promise<string> =>
  (await keys.make({ ...usualTerms, ...terms })).record.id;
/** What the gateway says of a key: its id, `none`, or the code of a refusal. */
const said = async (id: string): Promise<string> => {
  try {
    return (await known.find(id))?.key.id ?? "none";
  } catch (error) {
    if (error instanceof InferenceError) return error.code;
    throw error;
  }
};
const whenFollowing = (): Promise<void> => expect.poll(() => said("000000000000")).toBe("none");

describe("a gateway", () => {
  it("asks Redis about a key once, and about many with few calls", async () => {
    const ids = await Promise.all(Array.from({ length: 100 }, make));
    follow();
    await whenFollowing();
    const calls = async (): Promise<number> => {
      const stats = await direct.info("commandstats");
      return Number(/cmdstat_mget:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    };
    const before = await calls();
    expect(await Promise.all(ids.map(said))).toEqual(ids);
    expect(await Promise.all(ids.map(said))).toEqual(ids);
    expect((await calls()) - before).toBeLessThanOrEqual(4);
    expect(known.find(ids[0] ?? "")).not.toBeInstanceOf(Promise);
  });

  it("hears of every change of a key and of its tenant", async () => {
    const id = await make();
    follow();
    await whenFollowing();
    expect(await said(id)).toBe(id);
    await keys.revoke(id);
    await expect.poll(async () => (await known.find(id))?.key.revokedAt).toBeTypeOf("number");
    await writeTenant(direct, "acme", { from: undefined, to: JSON.stringify({ id: "acme", state: "suspended" }) });
    await expect.poll(async () => (await known.find(id))?.tenant?.state).toBe("suspended");
  });

  it("remembers that there is no key, until it hears of one", async () => {
    follow({ staleMs: 120_000 });
    await whenFollowing();
    const before = known.version;
    const id = await make();
    await expect.poll(() => known.version).toBeGreaterThan(before);
    await direct.rename(`{keys}:key:${id}`, "{keys}:hidden");
    expect(await said(id)).toBe("none");
    await direct.rename("{keys}:hidden", `{keys}:key:${id}`);
    expect(await said(id)).toBe("none");
    await keys.revoke(id); // any change of the key
    await expect.poll(() => said(id)).toBe(id);
  });

  it("forgets all if Redis has lost changes, or is another server", async () => {
    const id = await make();
    follow();
    await whenFollowing();
    expect(await said(id)).toBe(id);
    await direct.del(`{keys}:key:${id}`, "{keys}:changes");
    await expect.poll(() => said(id)).toBe("none");
  });

  it("forgets all if it has missed changes that are not kept any more", async () => {
    const id = await make();
    follow();
    await whenFollowing();
    expect(await said(id)).toBe(id);
    await direct.del(`{keys}:key:${id}`);
    const [newest] = await direct.xrevrange("{keys}:changes", "+", "-", "COUNT", 1);
    await direct.xdel("{keys}:changes", newest?.[0] ?? "");
    await direct.xadd("{keys}:changes", "*", "c", "key:another");
    await expect.poll(() => said(id)).toBe("none");
  });

  it("lets nobody in for the record of a tenant that it cannot read", async () => {
    const id = await make({ tenant: "odd" });
    await direct.set("{keys}:tenant:odd", JSON.stringify({ id: "odd", state: "unheard of" }));
    follow();
    await whenFollowing();
    expect(await said(id)).toBe("none");
  });

  it("looks up no more than 200 ids a second, however many clients guess", async () => {
    follow();
    await whenFollowing();
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => said(`guess${String(i).padStart(7, "0")}`)),
    );
    const count = (what: string) => answers.filter((one) => one === what).length;
    expect(count("none")).toBeGreaterThan(150);
    expect(count("none")).toBeLessThanOrEqual(200);
    expect(count("none") + count("unavailable")).toBe(1_000);
  });

  it("reads keys that it has known again, however many there are and whatever clients guess", async () => {
    const ids = await Promise.all(Array.from({ length: 600 }, make));
    follow();
    await whenFollowing();
    await Promise.all(Array.from({ length: 300 }, (_, i) => said(`again${String(i).padStart(7, "0")}`)));
    const found: (string | undefined)[] = [];
    for await (const page of known.readAgain([...ids, "000000000001"])) {
      for (const one of page.values()) found.push(one?.key.id);
    }
    expect(found).toEqual([...ids, undefined]);
    expect(ids.map((id) => known.peek(id)?.key.id)).toEqual(ids);
  });

  it("looks a key up again that has changed, however many clients guess", async () => {
    const id = await make();
    follow();
    await whenFollowing();
    expect(await said(id)).toBe(id);
    const before = known.version;
    await keys.change(id, (key) => ({ ...key, name: "other" }));
    await expect.poll(() => known.version).toBeGreaterThan(before);
    const guesses = Array.from({ length: 1_000 }, (_, i) => said(`guess${String(i).padStart(7, "0")}`));
    expect(await said(id)).toBe(id);
    expect(await Promise.all(guesses)).toContain("unavailable");
  });

  it("lets known keys in while Redis is away, for the grace and no longer, and no others", async () => {
    const [id, other] = [await make(), await make()];
    follow({ staleMs: 500, graceMs: 10_000 });
    await whenFollowing();
    expect(await said(id)).toBe(id);
    proxy.blackHole("toClient", "toServer");
    await expect.poll(() => said(other)).toBe("unavailable");
    expect(await said(id)).toBe(id);
    await expect.poll(() => said(id)).toBe("unavailable");
    proxy.heal();
    await expect.poll(() => said(id)).toBe(id);
    await expect.poll(() => said(other)).toBe(other);
  });

  it("does not say who a client is while Redis is away, because it cannot tell what is used", async () => {
    const caller = Caller.of(anyOwner("acme"));
    const service = new KeyService(undefined, { redis, buckets: 1 });
    expect(await service.whoami(caller)).toMatchObject({ tenant: "acme", used: { queued_requests: 0 } });
    proxy.blackHole("toClient", "toServer");
    await expect(service.whoami(caller)).rejects.toMatchObject({ code: "unavailable" });
  });

  it("lets nobody in before it has reached Redis", async () => {
    follow();
    expect(await said("000000000000")).toBe("unavailable");
  });
});
