/**
 * The jobs process takes entries out of an outbox after other processes have failed, and leaves
 * entries that it cannot read.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { randomBytes } from "node:crypto";
import { createEventsGroup } from "#shared/queue/webhooks/outbox.js";
import { eventsKey, webhookKeys } from "#shared/queue/keys.js";
import type { DeliveryRun } from "#shared/queue/webhooks/begin-delivery.js";
import { connectBlockingReader } from "#shared/redis/connect.js";
import { Outbox } from "../../../gateway/doors/jobs/outbox.js";
import { newSecret } from "../../../gateway/webhooks/secrets.js";
import { Webhooks } from "../../../gateway/webhooks/webhooks.js";
import { useLab } from "../../support/queue/lab.js";
import { silentLog } from "../../support/silent.js";

const KEY = eventsKey(0);

describe("the outbox", () => {
  const lab = useLab();
  const secret = randomBytes(32);
  let tenants = 0;
  let delivered: DeliveryRun[] = [];
  let fails = false;
  let tried: string[] = [];
  let stop: () => Promise<void> = () => Promise.resolve();
  beforeEach(async () => {
    delivered = [];
    [fails, tried] = [false, []];
    await createEventsGroup(lab.redis, KEY);
  });
  afterEach(async () => {
    await stop();
    await lab.redis.flushall();
  });
  const webhooks = () => new Webhooks({ redis: lab.redis, buckets: 1 });
  const run = () => {
    const closing = new AbortController();
    const link = { url: lab.url, name: "outbox", log: silentLog };
    const running = new Outbox({
      redis: lab.redis,
      openReader: () => connectBlockingReader(link),
      buckets: 1,
      consumer: "this",
      webhooks: webhooks(),
      jobs: { toldOf: () => Promise.reject(new Error("nothing tells of a job here")) },
      kept: { ttlMs: 60_000, most: 10_000 },
      secret: () => secret,
      deliveries: {
        add: (one) => {
          tried.push(one.message);
          if (fails) return Promise.reject(new Error("Redis is away"));
          delivered.push(one);
          return Promise.resolve();
        },
        remove: () => Promise.resolve(),
      },
      timers: { set: () => Promise.resolve() },
      schedules: { notice: () => Promise.resolve() },
      log: silentLog,
    }).run(closing.signal);
    stop = () => {
      closing.abort();
      return running;
    };
  };
  const newTenant = async () => {
    const tenant = `t${tenants++}`;
    const told = { url: "https://example.com/", events: ["sequence.expired" as const], enabled: true };
    await webhooks().make({ id: "wh_1", tenant, ...told, createdAt: 1, secret: `open:${newSecret()}` });
    return tenant;
  };
  const note = (tenant: string, type = "sequence.expired") => {
    const facts = { model: "chain", version: "1", sequence: "u1", steps: 1, last: "1790000000000" };
    return lab.redis.xadd(KEY, "*", "t", tenant, "e", type, "d", JSON.stringify(facts));
  };
  /**
   * Notes all messages at once, because Redis syncs its file for each read of its input, not for
   * each command.
   */
  const noteMany = (count: number, tenant: string) => Promise.all(Array.from({ length: count }, () => note(tenant)));
  const messages = () => new Set(delivered.map(({ message }) => message)).size;

  it("takes over all that a process has left at once, however much it is", async () => {
    const EVENTS = 500;
    const tenant = await newTenant();
    await noteMany(EVENTS, tenant);
    await lab.redis.xreadgroup("GROUP", "jobs", "dead", "COUNT", EVENTS, "STREAMS", KEY, ">");
    const ids = (await lab.redis.xrange(KEY, "-", "+")).map(([id]) => id);
    await lab.redis.xclaim(KEY, "jobs", "dead", 0, ...ids, "IDLE", 60_000, "JUSTID");
    run();
    await expect.poll(messages).toBe(EVENTS);
    await expect.poll(() => lab.redis.xlen(KEY)).toBe(0);
  });

  it("takes little more while nothing can be done with it", async () => {
    const EVENTS = 5_000;
    const tenant = await newTenant();
    await noteMany(EVENTS, tenant);
    fails = true;
    run();
    // A few messages are tried once more after five seconds.
    await expect.poll(() => tried.length - new Set(tried).size).toBeGreaterThan(0);
    expect(new Set(tried).size).toBeLessThan(EVENTS / 2);
  });

  it("leaves what it cannot read to a newer version, and goes on with all else", async () => {
    const [tenant, broken] = [await newTenant(), await newTenant()];
    await lab.redis.hset(webhookKeys.webhooks(broken), "wh_2", JSON.stringify({ of: "a newer version" }));
    await noteMany(100, broken);
    await note(tenant, "job.started.by.a.newer.version");
    await note(tenant);
    run();
    await expect.poll(messages).toBe(1);
    await expect.poll(() => lab.redis.xlen(KEY)).toBe(101);
    // The process removes an entry first, and then acknowledges the entry.
    await expect.poll(pending).toBe(101);
    await lab.redis.hdel(webhookKeys.webhooks(broken), "wh_2");
    await expect.poll(messages).toBe(101);
    await expect.poll(pending).toBe(1);
  });

  async function pending(): Promise<number> {
    const [count] = (await lab.redis.xpending(KEY, "jobs")) as [number];
    return count;
  }
});
