import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { RedisClock } from "#shared/redis/clock.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { Connections } from "#shared/redis/connections.js";
import { delay } from "#shared/retry.js";
import { Hand, type Held } from "../../worker/intake/hand.js";
import { keepLeases } from "../../worker/intake/lease.js";
import { reclaimWhileOpen } from "../../worker/intake/reclaimer.js";
import { Watcher } from "../../worker/intake/watcher.js";
import { Steadiness } from "../../worker/intake/steadiness.js";
import { ensureGroup } from "../../worker/queue/stream.js";
import { startRedis } from "../setup/redis.js";
import { admitRequest, takeOne, type Lab } from "./lab.js";

const log = pino({ level: "silent" });
const LEASE_MS = 1_000;

describe("a Redis that was frozen for longer than a lease", () => {
  it.each([2_000, 4_000])("lets nobody take over what its worker still holds (%i ms)", async (frozenMs) => {
    const folder = mkdtempSync(join(tmpdir(), "baton-frozen-"));
    const server = await startRedis(folder);
    const [a, b] = ["a.1", "b.1"].map((consumer) => ({
      redis: connectRedis({ url: server.url, name: consumer, log }),
      lane: { model: "m", version: "1", shard: 0 },
      consumer,
    }));
    if (a === undefined || b === undefined) throw new Error("two were made");
    const stop = new AbortController();
    try {
      for (const { redis } of [a, b]) await whenReady(redis, AbortSignal.timeout(5_000));
      await ensureGroup(a.redis, a.lane);
      await admitRequest({ redis: a.redis, lane: a.lane } as Lab, "r1");
      const delivery = await takeOne(a);
      const hand = new Hand();
      hand.hold([{ delivery } as Held], "fresh");
      hand.take(hand.waiting); // it runs
      const clock = new RedisClock();
      const taken: string[] = [];
      const idle = new Hand();
      const [steadyA, steadyB] = [
        new Steadiness(LEASE_MS, performance.now()),
        new Steadiness(LEASE_MS, performance.now()),
      ];
      const running = Promise.all([
        keepLeases({ queue: a, hand, clock, leaseMs: LEASE_MS, steadiness: steadyA, log }, stop.signal),
        keepLeases({ queue: b, hand: idle, clock, leaseMs: LEASE_MS, steadiness: steadyB, log }, stop.signal),
        reclaimWhileOpen(
          {
            queue: b,
            hand: idle,
            clock,
            leaseMs: LEASE_MS,
            steadiness: steadyB,
            room: () => 16,
            watcher: new Watcher({ queue: b, connections: new Connections(b.redis, log), leaseMs: LEASE_MS, log }),
            accept: ({ deliveries }) => taken.push(...deliveries.map(({ request }) => request)),
            log,
          },
          stop.signal,
        ),
      ]);
      await delay(LEASE_MS * 1.5);
      server.freeze();
      await delay(frozenMs);
      server.thaw();
      await delay(LEASE_MS * 2);
      const owner = await a.redis.xpending("ready:{m:1:0}", "workers", "-", "+", 1);
      stop.abort();
      await running;
      expect(taken).toEqual([]);
      expect(owner).toMatchObject([[delivery.entry, "a.1", expect.any(Number), 1]]);
    } finally {
      stop.abort();
      for (const { redis } of [a, b]) redis.disconnect();
      await server.dispose();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
