import { once } from "node:events";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { Connections } from "#shared/redis/connections.js";
import { Watcher } from "../../worker/intake/watcher.js";
import { abandon } from "../../worker/queue/abandon.js";
import { overdue } from "../../worker/queue/overdue.js";
import { reclaim } from "../../worker/queue/reclaim.js";
import { renew } from "../../worker/queue/renew.js";
import { admitRequest, takeOne, useLab } from "./lab.js";

const LEASE_MS = 60_000;
const limits = { silentMs: 100, leaseMs: LEASE_MS };
const log = pino({ level: "silent" });

function useEntry() {
  const lab = useLab();
  /** An entry of a.1's. */
  const held = async () => {
    await admitRequest(lab, "r1");
    return (await takeOne(lab.queue)).entry;
  };
  const free = async () => (await reclaim({ ...lab.queue, consumer: "c.1" }, LEASE_MS, 10, "0-0")).deliveries.length;
  const late = async () => (await overdue(lab.other, true, limits)).silent;
  return { lab, held, free, late };
}

describe("overdue", () => {
  const { lab, held, late } = useEntry();

  it("names who is silent and holds entries, but not the caller", async () => {
    await held();
    expect(await late()).toEqual([]);
    await expect.poll(late).toEqual(["a.1"]);
    expect(await overdue(lab.queue, true, { ...limits, silentMs: 0 })).toEqual({ workers: 2, silent: [] });
  });

  it("tells of its caller that it lives", async () => {
    await held();
    await expect.poll(late).toEqual(["a.1"]);
    await overdue(lab.queue, false, limits);
    expect(await late()).toEqual([]);
  });

  it("takes nothing for its caller", async () => {
    await admitRequest(lab, "r1");
    await overdue(lab.queue, false, limits);
    expect(await takeOne(lab.other)).toMatchObject({ request: "r1" });
  });

  it("does not name who holds nothing", async () => {
    await overdue(lab.queue, false, limits);
    expect((await overdue(lab.other, true, { ...limits, silentMs: 0 })).silent).toEqual([]);
  });

  it("does not name whose lease is over: any worker takes over anyhow", async () => {
    await held();
    await expect.poll(late).toEqual(["a.1"]);
    expect((await overdue(lab.other, true, { ...limits, leaseMs: 50 })).silent).toEqual([]);
  });

  it("names nobody to who does not ask", async () => {
    await held();
    await expect.poll(late).toEqual(["a.1"]);
    expect(await overdue(lab.other, false, limits)).toEqual({ workers: 0, silent: [] });
  });
});

describe("abandon of a worker that is taken for dead", () => {
  const { lab, held, free, late } = useEntry();

  it("leaves alone who has renewed since", async () => {
    const entry = await held();
    await expect.poll(late).toEqual(["a.1"]);
    await renew(lab.queue, [entry]);
    expect(await abandon(lab.queue, limits.silentMs)).toBe(0);
    expect(await free()).toBe(0);
  });

  it("is undone by a renewal that comes before anybody has taken over", async () => {
    const entry = await held();
    await expect.poll(late).toEqual(["a.1"]);
    expect(await abandon(lab.queue, limits.silentMs)).toBe(1);
    expect((await renew(lab.queue, [entry])).lost).toEqual([]);
    expect(await free()).toBe(0);
  });

  it("frees nothing twice", async () => {
    await held();
    expect(await abandon(lab.queue)).toBe(1);
    expect(await abandon(lab.queue)).toBe(0);
  });
});

describe("how long a link has been up", () => {
  const lab = useLab();

  it("counts from when it came back; of one that was never lost nothing tells of an outage", async () => {
    const redis = connectRedis({ url: lab.url, name: "b.1", log });
    try {
      const connections = new Connections(redis, log);
      expect(connections.upFor(performance.now())).toBe(0);
      await whenReady(redis, AbortSignal.timeout(5_000));
      expect(connections.upFor(performance.now())).toBe(Infinity);
      const closed = once(redis, "close");
      redis.disconnect(true);
      await closed;
      expect(connections.upFor(performance.now())).toBe(0);
      await whenReady(redis, AbortSignal.timeout(5_000));
      expect(connections.upFor(performance.now())).toBeLessThan(Infinity);
    } finally {
      redis.disconnect();
    }
  });
});

describe("a watcher", () => {
  const { lab, held, free } = useEntry();
  const open: RedisClient[] = [];
  const connect = async (name: string) => {
    const redis = connectRedis({ url: lab.url, name, log });
    open.push(redis);
    await whenReady(redis, AbortSignal.timeout(5_000));
    return redis;
  };
  let watcher: Watcher;
  let dying: RedisClient;

  beforeEach(async () => {
    dying = await connect("a.1");
    const queue = { ...lab.other, redis: await connect("b.1") };
    const seen = new Connections(queue.redis, log);
    const connections = { names: () => seen.names(), upFor: () => 10_000 };
    watcher = new Watcher({ queue, connections, leaseMs: LEASE_MS, log });
  });
  afterEach(() => {
    for (const redis of open.splice(0)) redis.disconnect();
  });
  const lookFor = async (ms: number) => {
    for (const until = performance.now() + ms; performance.now() < until;) {
      await watcher.look();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };

  it("frees the steps of a worker that has lost its connections with its life", async () => {
    await held();
    await lookFor(600);
    expect(await free()).toBe(0);
    dying.disconnect();
    const looked = async () => {
      await watcher.look();
      return free();
    };
    await expect.poll(looked).toBe(1);
  });

  it("leaves a worker its steps whose link was cut and is back", async () => {
    await held();
    dying.disconnect();
    await expect.poll(async () => String(await lab.redis.client("LIST"))).not.toContain("name=a.1");
    await lookFor(200);
    await connect("a.1");
    await lookFor(600);
    expect(await free()).toBe(0);
  });

  it("leaves it to the leases where the server does not say who is connected", async () => {
    const user = "untold";
    await lab.redis.acl("SETUSER", user, "on", ">secret", "~*", "&*", "+@all", "-client|list");
    const redis = connectRedis({ url: lab.url.replace("//", `//${user}:secret@`), name: "b.1", log });
    open.push(redis);
    await whenReady(redis, AbortSignal.timeout(5_000));
    await held();
    dying.disconnect();
    await expect.poll(async () => String(await lab.redis.client("LIST"))).not.toContain("name=a.1");
    const seen = new Connections(redis, log);
    const connections = { names: () => seen.names(), upFor: () => 10_000 };
    watcher = new Watcher({ queue: { ...lab.other, redis }, connections, leaseMs: LEASE_MS, log });
    await lookFor(600);
    expect(await free()).toBe(0);
    expect(await seen.names()).toBeUndefined();
  });
});
