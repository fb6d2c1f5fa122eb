/** What the observer sees beside the queue, of states that the fleet's own scripts have written. */
import { describe, expect, it } from "vitest";
import { lookBeside, type Asked } from "../../gateway/fleet/beside-queue.js";
import { beginDelivery } from "#shared/queue/webhooks/begin-delivery.js";
import { writeBatch } from "#shared/queue/batches/write-batch.js";
import { eventsKey, hibernationKeys, laneKeys, liveKey, setAsideKey, webhookKeys } from "#shared/queue/keys.js";
import { timeAt } from "#shared/redis/clock.js";
import { useLab } from "../support/queue/lab.js";

const MINUTE = 60_000;

describe("a look beside the queue", () => {
  const lab = useLab();
  const asked = (more: Partial<Asked> = {}): Asked => ({
    redis: lab.redis,
    buckets: 1,
    away: new Set<number>(),
    models: [],
    tenants: [],
    budgetsOf: undefined,
    ...more,
  });

  it("is empty in an empty fleet, and says what each server of Redis uses", async () => {
    const found = await lookBeside(asked(), 0, {});
    const { servers = [], ...others } = found;
    expect(others).toEqual({
      buckets: { hibernating: new Map(), asked: new Set(), dead: 0, events: 0 },
      webhooks: { pending: 0, oldestMs: 0 },
      batches: new Map(),
      budgets: undefined,
    });
    expect(servers).toHaveLength(1);
    expect(servers[0]?.node).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(servers[0]?.used).toBeGreaterThan(100_000);
    expect(servers[0]?.replicas).toBe(0);
  });

  it("counts sequences by state, requests set aside, events, deliveries and batches", async () => {
    const { redis, lane } = lab;
    await redis.zadd(liveKey(lane), "+inf", "a:u1", 1_000, "a:u2", 1_001, "a:u3", 5_000, "a:u4");
    await redis.set(hibernationKeys(lane).reached, "1001");
    await redis.xadd(laneKeys(lane).dead, "*", "request", "a:r1");
    await redis.xadd(laneKeys(lane).dead, "*", "request", "a:r2");
    await redis.zadd(setAsideKey(lane.bucket), 1, lane.model);
    await redis.xadd(eventsKey(lane.bucket), "*", "e", "job.completed");
    const kept = { ttlMs: MINUTE, most: 3 };
    const content = { event: "sequence.expired", job: "", webhook: "wh_1", target: "", body: "{}" };
    for (const message of ["m1", "m2"]) {
      await beginDelivery(redis, { tenant: "a", message, run: "1-0" }, kept, content);
    }
    const began = (await timeAt(redis, webhookKeys.pending)) - MINUTE;
    await redis.hset(webhookKeys.delivery("a", "m2"), "created", String(Math.floor(began)));
    const batch = (id: string, open: string | undefined, from?: string) =>
      writeBatch(
        redis,
        { tenant: "a", id, from, to: `{"id":"${id}${open}"}`, open },
        { keptMs: MINUTE, open: 9, known: 9 },
      );
    await batch("b1", "validating");
    await batch("b2", "in_progress");
    await batch("b3", "in_progress");
    await batch("b3", undefined, '{"id":"b3in_progress"}');
    const budgetsOf = async (tenant: string) => ({ jobs: tenant === "a" ? 0.5 : 1 });
    const found = await lookBeside(asked({ models: [lane.model, "other"], tenants: ["a"], budgetsOf }), 0, {});
    expect(found.buckets).toEqual({
      hibernating: new Map([
        [lane.model, 2],
        ["other", 0],
      ]),
      asked: new Set([lane.model, "other"]),
      dead: 2,
      events: 1,
    });
    expect(found.webhooks?.pending).toBe(2);
    expect(found.webhooks?.oldestMs).toBeGreaterThanOrEqual(MINUTE);
    expect(found.batches).toEqual(
      new Map([
        ["validating", 1],
        ["in_progress", 1],
      ]),
    );
    expect(found.budgets).toEqual(new Map([["a", { jobs: 0.5 }]]));
  });

  it("reads the budgets of some tenants in turn, and leaves out one that cannot be read", async () => {
    const tenants = Array.from({ length: 10 }, (_, i) => `t${i}`);
    const read: string[] = [];
    const budgetsOf = async (tenant: string) => {
      read.push(tenant);
      if (tenant === "t3") throw new Error("unreadable");
      return { jobs: 0.5 };
    };
    const first = await lookBeside(asked({ tenants, budgetsOf }), 1, {});
    expect(read).toEqual(tenants.slice(0, 8));
    const second = await lookBeside(asked({ tenants, budgetsOf }), 3, first);
    expect(read.slice(8)).toEqual(["t8", "t9", ...tenants.slice(0, 6)]);
    expect(second.budgets?.get("t7")).toEqual({ jobs: 0.5 });
    expect(second.budgets?.get("t3")).toEqual({});
    expect(second.budgets?.size).toBe(10);
  });

  it("drops a part that it cannot read, and keeps a part whose turn has not come", async () => {
    await lab.redis.set(webhookKeys.pending, "a person wrote this");
    const before = await lookBeside(asked(), 0, {});
    expect(before.webhooks).toBeUndefined();
    expect(before.batches).toBeDefined();
    await lab.redis.del(webhookKeys.pending);
    expect(await lookBeside(asked(), 19, before)).toEqual(before);
    expect((await lookBeside(asked(), 9, before)).webhooks).toEqual({ pending: 0, oldestMs: 0 });
  });
});
