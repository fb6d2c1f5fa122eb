import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { GROUP, laneKeys } from "#shared/keys.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { Connections } from "#shared/redis/connections.js";
import { Watcher } from "../../worker/intake/watcher.js";
import { abandon } from "../../worker/queue/abandon.js";
import { overdue } from "../../worker/queue/overdue.js";
import { reclaim } from "../../worker/queue/reclaim.js";
import { renew } from "../../worker/queue/renew.js";
import { admitRequest, takeOne, useLab } from "./lab.js";

const LEASE_MS = 60_000;
/** Later than a renewal, sooner than the lease's end. */
const LATE_MS = 30_000;
const limits = { idleMs: 20_100, leaseMs: LEASE_MS, holdMs: 5_000 };
const log = pino({ level: "silent" });

function useEntry() {
  const lab = useLab();
  /** An entry of a.1's that it has not renewed for so long. */
  const held = async (idleMs: number) => {
    await admitRequest(lab, "r1");
    const { entry } = await takeOne(lab.queue);
    await lab.redis.xclaim(laneKeys(lab.lane).ready, GROUP, "a.1", 0, entry, "IDLE", idleMs, "JUSTID");
    return entry;
  };
  const free = async () => (await reclaim({ ...lab.queue, consumer: "c.1" }, LEASE_MS, 10, "0-0")).deliveries.length;
  return { lab, held, free };
}

describe("overdue", () => {
  const { lab, held } = useEntry();

  it("names who is late, but not itself", async () => {
    await held(LATE_MS);
    expect(await overdue(lab.other, limits)).toEqual(["a.1"]);
    expect(await overdue(lab.queue, limits)).toEqual([]);
  });

  it("tells one worker at a time, for as long as it asks", async () => {
    await held(LATE_MS);
    const third = { ...lab.queue, consumer: "c.1" };
    expect(await overdue(lab.other, { ...limits, holdMs: 300 })).toEqual(["a.1"]);
    expect(await overdue(third, limits)).toEqual([]);
    expect(await overdue(lab.other, { ...limits, holdMs: 300 })).toEqual(["a.1"]);
    await expect.poll(() => overdue(third, limits)).toEqual(["a.1"]);
  });

  it.each([
    ["a worker that has renewed", 0],
    ["one whose lease is over: any worker takes over anyhow", LEASE_MS + 1],
  ])("does not name %s", async (_, idleMs) => {
    await held(idleMs);
    expect(await overdue(lab.other, limits)).toEqual([]);
  });
});

describe("abandon of a worker that is taken for dead", () => {
  const { lab, held, free } = useEntry();

  it("leaves what has been renewed since", async () => {
    const entry = await held(LATE_MS);
    await renew(lab.queue, [entry]);
    expect(await abandon(lab.queue, limits.idleMs)).toBe(0);
    expect(await free()).toBe(0);
  });

  it("is undone by a renewal that comes before anybody has taken over", async () => {
    const entry = await held(LATE_MS);
    expect(await abandon(lab.queue, limits.idleMs)).toBe(1);
    expect((await renew(lab.queue, [entry])).lost).toEqual([]);
    expect(await free()).toBe(0);
  });

  it("frees nothing twice", async () => {
    await held(LATE_MS);
    expect(await abandon(lab.queue)).toBe(1);
    expect(await abandon(lab.queue)).toBe(0);
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
  const lookTwice = async () => {
    await watcher.look();
    await new Promise((resolve) => setTimeout(resolve, 120));
    await watcher.look();
  };

  it("frees the steps of a worker that has lost its connections with its life", async () => {
    await held(LATE_MS);
    await lookTwice();
    expect(await free()).toBe(0);
    dying.disconnect();
    const looked = async () => {
      await watcher.look();
      return free();
    };
    await expect.poll(looked).toBe(1);
  });

  it("leaves a worker its steps whose link was cut and is back", async () => {
    await held(LATE_MS);
    dying.disconnect();
    await expect.poll(async () => String(await lab.redis.client("LIST"))).not.toContain("name=a.1");
    await watcher.look();
    await connect("a.1");
    await lookTwice();
    expect(await free()).toBe(0);
  });

  it("leaves it to the leases where the server does not say who is connected", async () => {
    const user = "untold";
    await lab.redis.acl("SETUSER", user, "on", ">secret", "~*", "&*", "+@all", "-client|list");
    const redis = connectRedis({ url: lab.url.replace("//", `//${user}:secret@`), name: "b.1", log });
    open.push(redis);
    await whenReady(redis, AbortSignal.timeout(5_000));
    await held(LATE_MS);
    dying.disconnect();
    await expect.poll(async () => String(await lab.redis.client("LIST"))).not.toContain("name=a.1");
    const seen = new Connections(redis, log);
    const connections = { names: () => seen.names(), upFor: () => 10_000 };
    watcher = new Watcher({ queue: { ...lab.other, redis }, connections, leaseMs: LEASE_MS, log });
    await lookTwice();
    expect(await free()).toBe(0);
    expect(await seen.names()).toBeUndefined();
  });
});
