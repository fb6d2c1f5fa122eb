import type { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { GROUP, laneKeys, registryKeys } from "#shared/queue/keys.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { ownedEntries } from "#shared/queue/work/read/owned.js";
import { connectBus } from "#shared/nats/connect.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { OwnConnection } from "#shared/redis/own-connection.js";
import type { Result } from "#shared/redis/transaction.js";
import { delay } from "#shared/retry.js";
import { Proxy } from "../../support/fleet/proxy.js";
import { oneLane, result, take, useLab } from "../../support/queue/lab.js";
import { startNats } from "../../support/brokers/nats.js";
import { LabMember, type MemberPlan } from "../../support/queue/member.js";
import { silentLog } from "../../support/silent.js";

/** So long that no worker is declared dead for its silence within a test. */
const LONG_MS = 30_000;

function useMembers() {
  const lab = useLab();
  const members: LabMember[] = [];
  afterEach(async () => {
    for (const member of members.splice(0)) await member.dispose();
    await lab.redis.flushall();
  });
  const join = async (name: string, plan: MemberPlan = {}) => {
    const member = await LabMember.join(lab, name, plan);
    members.push(member);
    return member;
  };
  /** Admits requests, which this member takes. */
  const holdSome = async (member: LabMember, count: number, prefix = "r") => {
    const requests = Array.from({ length: count }, (_, i) => `${prefix}${i}`);
    for (const request of requests) await lab.admitRequest(request);
    await member.read();
    return requests;
  };
  const living = async () => (await lab.redis.zrange(registryKeys.workers, "0", "-1")).sort();
  const graves = () => lab.redis.zcard(registryKeys.graves);
  return { lab, join, holdSome, living, graves };
}

describe("a worker that dies", () => {
  const { lab, join, holdSome, living, graves } = useMembers();

  it("is found by its connection, long before its lease is over, and the others share what it held", async () => {
    const others = [await join("b.1", { leaseMs: LONG_MS }), await join("c.1", { leaseMs: LONG_MS })];
    const dying = await join("a.1", { leaseMs: LONG_MS });
    const held = await holdSome(dying, 12);
    const begunAt = performance.now();
    dying.vanish();
    await expect.poll(() => others.flatMap(({ reclaimed }) => reclaimed).sort()).toEqual(held.sort());
    expect(performance.now() - begunAt).toBeLessThan(LONG_MS / 2);
    await expect.poll(graves).toBe(0);
    expect(await living()).toEqual(["b.1", "c.1"]);
    const consumers = (await lab.redis.xinfo("CONSUMERS", laneKeys(lab.lane).ready, GROUP)) as string[][];
    expect(consumers.map((info) => info[1])).not.toContain("a.1");
  });

  it("leaves a grave that is emptied as its others get room", async () => {
    const others = [await join("b.1", { room: 3 }), await join("c.1", { room: 4 })];
    const dying = await join("a.1");
    await holdSome(dying, 12);
    dying.vanish();
    await expect.poll(() => others.map(({ reclaimed }) => reclaimed.length)).toEqual([3, 4]);
    expect(await graves()).toBe(1);
    const late = await join("d.1", { room: 100 });
    await expect.poll(() => late.reclaimed.length).toBe(5);
    await expect.poll(graves).toBe(0);
  });

  it("may leave its entries to a worker that does not hear of it, and then asks what it owns", async () => {
    const heir = await join("b.1");
    const redis = heir.redis as Redis;
    const send = redis.sendCommand.bind(redis);
    redis.sendCommand = async (...args: Parameters<typeof send>) => {
      const results = (await send(...args)) as Result[];
      // Loses a reply of take-from that carries entries.
      const isLost =
        Array.isArray(results) && results.some(([, reply]) => Array.isArray(reply) && String(reply[0]) === "empty");
      if (isLost) throw new Error("Connection is closed.");
      return results;
    };
    const dying = await join("a.1");
    await holdSome(dying, 2);
    dying.vanish();
    await expect.poll(() => heir.doubts).toBeGreaterThan(0);
    expect(heir.reclaimed).toEqual([]);
    expect(await ownedEntries(heir.queue)).toHaveLength(2);
  });

  it("is found by its silence where the server does not tell who is connected", async () => {
    await lab.redis.acl("SETUSER", "untold", "on", ">secret", "~*", "&*", "+@all", "-client|list", "-client|id");
    const other = await join("b.1", { url: lab.url.replace("//", "//untold:secret@") });
    const dying = await join("a.1");
    const held = await holdSome(dying, 2);
    dying.vanish();
    await delay(500);
    expect(other.reclaimed).toEqual([]);
    await expect.poll(() => other.reclaimed).toEqual(held);
  });

  it("is left alone while its link is only cut for a moment", async () => {
    const other = await join("b.1", { leaseMs: LONG_MS });
    const proxy = await Proxy.start(Number(new URL(lab.url).port));
    try {
      const cut = await join("a.1", { leaseMs: LONG_MS, url: `redis://127.0.0.1:${proxy.port}` });
      const held = await holdSome(cut, 2);
      for (let i = 0; i < 5; i++) {
        proxy.resetAll();
        await delay(300);
      }
      expect(other.reclaimed).toEqual([]);
      expect(cut.holdings.unbegun()).toHaveLength(held.length);
      await cut.dispose();
    } finally {
      await proxy.dispose();
    }
  });

  it("may take more after it was declared dead, and is looked at again", async () => {
    const other = await join("b.1");
    const dying = await join("a.1");
    const held = await holdSome(dying, 2);
    dying.vanish();
    await expect.poll(() => other.reclaimed).toEqual(held);
    await expect.poll(graves).toBe(0);
    // The worker was frozen with an open read, and dies without another beat.
    await lab.admitRequest("late");
    expect(await take(oneLane(lab.redis, lab.lane, "a.1"))).toHaveLength(1);
    await expect.poll(() => other.reclaimed).toEqual([...held, "late"]);
    await expect.poll(graves).toBe(0);
    expect(await living()).toEqual(["b.1"]);
  });

  it("is found though nobody was left when it died: by the next worker that joins", async () => {
    const dying = await join("a.1");
    const held = await holdSome(dying, 2);
    dying.vanish();
    const other = await join("b.1");
    await expect.poll(() => other.reclaimed).toEqual(held);
  });
});

describe("a grave in a large fleet", () => {
  const { lab, join, holdSome, graves } = useMembers();
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  it("is heard of over NATS by a worker whose next beat is far away", async () => {
    const nats = await startNats();
    const bus = connectBus({ url: nats.url, name: "lab", log: silentLog });
    closing.push(
      () => bus.close(),
      () => nats.dispose(),
    );
    await expect.poll(() => bus.isUp()).toBe(true);
    const plan = { leaseMs: 600_000, bus };
    // The first beats show this worker a fleet so large that the worker beats once in 50 s.
    const others = Array.from({ length: 20_000 }, (_, i) => [Date.now() + 3_600_000, `other-${i}`]).flat();
    await lab.redis.zadd(registryKeys.workers, ...others);
    const rare = await join("b.1", plan);
    await expect.poll(() => lab.redis.hget(registryKeys.connections, "b.1")).not.toBeNull();
    await delay(1_000);
    await lab.redis.zrem(registryKeys.workers, ...others.filter((_, i) => i % 2 === 1));
    const full = await join("c.1", { ...plan, room: 0 });
    const dying = await join("a.1", plan);
    const held = await holdSome(dying, 3);
    dying.vanish();
    await expect.poll(() => rare.reclaimed.toSorted()).toEqual(held);
    expect(full.reclaimed).toEqual([]);
    await expect.poll(graves).toBe(0);
  });
});

describe("a worker that was cut off for longer than its lease", () => {
  const { lab, join, holdSome, living } = useMembers();

  it("gives up what waits, lives again when it is back, and commits only what it still owns", async () => {
    const other = await join("b.1", { room: 3 });
    const zombie = await join("a.1", { room: 100 });
    await holdSome(zombie, 6);
    const [running] = zombie.holdings.waiting;
    if (running === undefined) throw new Error("it holds six");
    zombie.holdings.take([running]);
    zombie.vanish();
    await expect.poll(() => other.reclaimed.length).toBe(3);
    await expect.poll(() => zombie.holdings.unbegun()).toEqual([]);
    await zombie.return();
    await expect.poll(living).toEqual(["a.1", "b.1"]);
    // No other worker took the rest, so the zombie still owns it, takes it back, and forgets the
    // others.
    await expect.poll(() => zombie.reclaimed).toEqual(["r3", "r4", "r5"]);
    expect(zombie.holdings.leftBy(Infinity)).toEqual([]);
    expect(await lab.redis.zcard(registryKeys.graves)).toBe(0);
    expect(await commit(zombie.queue, [result(running.delivery, { action: "drop" })], undefined)).toEqual(["lost"]);
    const [kept] = zombie.holdings.suspects;
    if (kept === undefined) throw new Error("it has taken three back");
    expect(await commit(zombie.queue, [result(kept.delivery, { action: "drop" })], undefined)).toEqual(["committed"]);
  });

  it("drops what was taken over while it did not notice", async () => {
    const other = await join("b.1", { leaseMs: LONG_MS });
    const zombie = await join("a.1", { leaseMs: LONG_MS });
    const held = await holdSome(zombie, 2);
    zombie.vanish();
    await expect.poll(() => other.reclaimed).toEqual(held);
    expect(zombie.holdings.unbegun()).toHaveLength(2);
    await zombie.return();
    await expect.poll(() => zombie.holdings.unbegun()).toEqual([]);
    expect(await living()).toEqual(["a.1", "b.1"]);
  });
});

describe("what a living worker has given up", () => {
  const { join, holdSome } = useMembers();

  it("comes back to it after a lease, and to nobody else", async () => {
    const other = await join("b.1");
    const worker = await join("a.1");
    const held = await holdSome(worker, 2);
    worker.holdings.leave(worker.holdings.unbegun(), performance.now());
    await expect.poll(() => worker.reclaimed).toEqual(held);
    expect(other.reclaimed).toEqual([]);
  });
});

describe("a registry that is wiped", () => {
  const { lab, join, holdSome, living } = useMembers();

  it("is filled again, and nobody is taken for dead", async () => {
    const members = [await join("a.1"), await join("b.1")];
    const [a] = members;
    if (a === undefined) throw new Error("two have joined");
    await holdSome(a, 2);
    await lab.redis.del(Object.values(registryKeys));
    await expect.poll(living).toEqual(["a.1", "b.1"]);
    expect(await lab.redis.hlen(registryKeys.announcements)).toBe(2);
    await delay(1_500);
    expect(members.flatMap(({ reclaimed }) => reclaimed)).toEqual([]);
    expect(a.holdings.unbegun()).toHaveLength(2);
  });

  it("takes what the workers held with it when all of Redis is wiped", async () => {
    const worker = await join("a.1");
    await holdSome(worker, 2);
    await lab.redis.flushall();
    await expect.poll(living).toEqual(["a.1"]);
    await expect.poll(() => worker.holdings.unbegun()).toEqual([]);
  });
});

describe("a worker that leaves", () => {
  const { lab, join, holdSome, living, graves } = useMembers();

  it("is gone for gateways at once, lives while it drains, and leaves the rest to others", async () => {
    const leaving = await join("a.1");
    const held = await holdSome(leaving, 2);
    await leaving.liveness.leave();
    expect(await lab.redis.zrange(registryKeys.gone, "0", "-1")).toEqual(["a.1"]);
    await delay(1_500);
    expect(await living()).toEqual(["a.1"]);
    await leaving.liveness.end();
    expect(await living()).toEqual([]);
    expect(await graves()).toBe(1);
    const other = await join("b.1");
    await expect.poll(() => other.reclaimed).toEqual(held);
  });
});

describe("what workers cost that hold much and do nothing", () => {
  const { lab, join, holdSome } = useMembers();

  it("is their beats alone, however much they hold", async () => {
    const members = [];
    for (let i = 0; i < 16; i++) members.push(await join(`w${i}.1`));
    for (const [i, member] of members.entries()) await holdSome(member, 8, `w${i}-`);
    const calls = async () => {
      const stats = await lab.redis.info("commandstats");
      return new Map(Array.from(stats.matchAll(/cmdstat_(\S+):calls=(\d+)/g), ([, name, n]) => [name, Number(n)]));
    };
    const before = await calls();
    await delay(3_000);
    const after = await calls();
    const made = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    expect(made("evalsha")).toBeGreaterThan(16);
    // Two beats are at least 60 ms apart.
    expect(made("evalsha")).toBeLessThan((16 * 6_000) / 60);
    const onStreams = [...after.keys()].filter((name) => String(name).startsWith("x") && made(String(name)) > 0);
    expect(onStreams).toEqual([]);
  });
});

describe("how long a link has been up", () => {
  const lab = useLab();

  it("counts from when it came back; of one that was never lost nothing tells of an outage", async () => {
    const redis = connectRedis({ url: lab.url, name: "b.1", log: silentLog });
    try {
      let changes = 0;
      const connection = new OwnConnection(redis, "any", silentLog, () => changes++);
      expect(connection.upFor(performance.now())).toBe(0);
      await whenReady(redis, AbortSignal.timeout(5_000));
      expect(connection.upFor(performance.now())).toBe(Infinity);
      await expect.poll(() => changes).toBe(1);
      const { name } = connection;
      expect(await connection.present([`${name}0`])).toEqual(new Set([name]));
      redis.disconnect(true);
      await expect.poll(() => changes).toBe(2);
      expect(connection.upFor(performance.now())).toBeLessThan(Infinity);
      expect(connection.name).not.toBe(name);
      expect(await connection.present([String(name)])).toEqual(new Set([connection.name]));
    } finally {
      redis.disconnect();
    }
  });
});
