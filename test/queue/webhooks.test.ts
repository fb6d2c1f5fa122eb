/**
 * Webhooks and deliveries in Redis: each is written once, kept for its time, and then forgotten.
 */
import { describe, expect, it } from "vitest";
import { webhookKeys } from "#shared/queue/keys.js";
import { beginDelivery, type DeliveryRun } from "#shared/queue/webhooks/begin-delivery.js";
import { listDeliveries, noteLooked, overdueDeliveries, readDelivery } from "#shared/queue/webhooks/deliveries.js";
import { noteAttempt } from "#shared/queue/webhooks/note-attempt.js";
import { noteReplay, replayLimits } from "#shared/queue/webhooks/note-replay.js";
import { readRevisions, readWebhooks } from "#shared/queue/webhooks/webhooks.js";
import { writeWebhook } from "#shared/queue/webhooks/write-webhook.js";
import { useLab } from "../support/queue/lab.js";
import { until } from "../support/until.js";

const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;

describe("writeWebhook", () => {
  const lab = useLab();
  const write = (tenant: string, id: string, from?: string, to?: string, most = 10) =>
    writeWebhook(lab.redis, { tenant, id }, from, to, most);

  it("writes once, however often it is called", async () => {
    const written = { said: "written", revision: 1, webhooks: ["one"] };
    expect(await write("once", "a", undefined, "one")).toEqual(written);
    expect(await write("once", "a", undefined, "one")).toEqual(written);
    expect(await write("once", "a", "one", "two")).toEqual({ said: "written", revision: 2, webhooks: ["two"] });
    expect(await write("once", "a", "one", "three")).toEqual({ said: "conflict" });
    expect(await write("once", "a", "two")).toEqual({ said: "written", revision: 3, webhooks: [] });
    expect(await write("once", "a", "two")).toEqual({ said: "written", revision: 3, webhooks: [] });
    expect((await readRevisions(lab.redis)).get("once")).toBe(3);
  });

  it("lets a tenant have so many, and change them all the same", async () => {
    await write("full", "a", undefined, "one", 1);
    expect(await write("full", "b", undefined, "other", 1)).toEqual({ said: "full" });
    expect(await write("full", "a", "one", "two", 1)).toMatchObject({ said: "written" });
    expect(await readWebhooks(lab.redis, "full")).toEqual(["two"]);
  });
});

describe("a delivery", () => {
  const lab = useLab();
  const kept = { ttlMs: MINUTE, most: 3 };
  const content = { event: "sequence.expired", job: "", webhook: "wh_1", target: "", body: "{}" };
  const attempt = { at: "2026-11-22T00:00:00Z", status: 500, error: "http_500", ms: 5 };
  const named = (tenant: string, message: string, run = "1-0"): DeliveryRun => ({ tenant, message, run });
  const milliseconds = async () => {
    const [seconds, micros] = (await lab.redis.time()).map(Number);
    return (seconds ?? 0) * 1_000 + Math.floor((micros ?? 0) / 1_000);
  };
  const nextMillisecond = async () => {
    const now = await milliseconds();
    await until(async () => (await milliseconds()) > now);
  };
  const begin = async (run: DeliveryRun) => (await beginDelivery(lab.redis, run, kept, content)).said;
  const replay = async (run: DeliveryRun) => (await beginDelivery(lab.redis, run, kept, undefined)).said;
  const end = (run: DeliveryRun) =>
    noteAttempt(lab.redis, run, { state: "delivered", attempt, nextInMs: undefined }, kept);

  it("has one run for its event, and one for each replay", async () => {
    const first = named("runs", "msg_1");
    expect(await begin(first)).toBe("begun");
    expect(await begin(first)).toBe("begun");
    expect(await end(first)).toBe("noted");
    expect(await begin(first)).toBe("ended");
    const again = named("runs", "msg_1", "2-0");
    expect(await replay(again)).toBe("begun");
    expect(await replay(again)).toBe("begun");
    expect(await begin(first)).toBe("ended");
    expect(await readDelivery(lab.redis, "runs", "msg_1")).toMatchObject({ state: "pending", tries: 0, run: "2-0" });
    // An attempt of the first run that is still under way is noted, and ends nothing.
    await end(first);
    expect(await readDelivery(lab.redis, "runs", "msg_1")).toMatchObject({ state: "pending", tries: 0 });
    await end(again);
    expect(await replay(again)).toBe("ended");
    const delivery = await readDelivery(lab.redis, "runs", "msg_1");
    expect(delivery).toMatchObject({ ...content, state: "delivered", tries: 1, nextAt: undefined });
    expect(delivery?.attempts).toEqual([attempt, attempt, attempt]);
    expect(await replay(named("runs", "msg_none", "3-0"))).toBe("unknown");
    expect(await readDelivery(lab.redis, "other", "msg_1")).toBeUndefined();
  });

  it("has ended once an attempt has: what another process had under way changes nothing", async () => {
    const run = named("late", "msg_1");
    await begin(run);
    await end(run);
    await noteAttempt(lab.redis, run, { state: "pending", attempt, nextInMs: MINUTE }, kept);
    const delivery = await readDelivery(lab.redis, "late", "msg_1");
    expect(delivery).toMatchObject({ state: "delivered", tries: 1, nextAt: undefined });
    expect(delivery?.attempts).toHaveLength(2);
  });

  it("is kept until its next attempt and for its time after that, with its newest attempts", async () => {
    const run = named("times", "msg_1");
    await begin(run);
    const key = webhookKeys.delivery("times", "msg_1");
    for (let i = 0; i < 60; i++) {
      await noteAttempt(lab.redis, run, { state: "pending", attempt: { ...attempt, ms: i }, nextInMs: MINUTE }, kept);
    }
    const delivery = await readDelivery(lab.redis, "times", "msg_1");
    expect(delivery?.tries).toBe(60);
    expect(delivery?.attempts.map(({ ms }) => ms)).toEqual(Array.from({ length: 50 }, (_, i) => i + 10));
    expect(delivery?.nextAt).toBeGreaterThan(Date.now());
    for (const one of [key, webhookKeys.deliveries("times")]) {
      expect(await lab.redis.pttl(one)).toBeGreaterThan(1.5 * MINUTE);
    }
    await lab.redis.del(key);
    expect(await noteAttempt(lab.redis, run, { state: "failed", attempt, nextInMs: undefined }, kept)).toBe("gone");
    expect(await lab.redis.exists(key)).toBe(0);
  });

  it("waits for an attempt for as long as it takes, and is kept for its time once it has ended", async () => {
    const run = named("waiting", "msg_1");
    const [key, log] = [webhookKeys.delivery("waiting", "msg_1"), webhookKeys.deliveries("waiting")];
    await begin(run);
    for (const one of [key, log]) expect(await lab.redis.pttl(one)).toBeGreaterThan(6 * DAY);
    await end(run);
    expect(await lab.redis.pttl(key)).toBeLessThanOrEqual(MINUTE);
    await replay(named("waiting", "msg_1", "2-0"));
    // An attempt of the first run that is still under way must not shorten the record's time.
    await end(run);
    for (const one of [key, log]) expect(await lab.redis.pttl(one)).toBeGreaterThan(6 * DAY);
  });

  it("is forgotten where too many have ended, and where its time has passed", async () => {
    const messages = ["msg_1", "msg_2", "msg_3", "msg_4", "msg_5"];
    for (const message of messages) await begin(named("many", message));
    const listed = async () => (await listDeliveries(lab.redis, { tenant: "many" }, 0, 10)).sort();
    expect(await listed()).toEqual(messages);
    for (const message of ["msg_4", "msg_1", "msg_2", "msg_3"]) {
      await end(named("many", message));
      // Of two that end in the same millisecond, either may be the older.
      await nextMillisecond();
    }
    expect(await listed()).toEqual(["msg_1", "msg_2", "msg_3", "msg_5"]);
    expect(await readDelivery(lab.redis, "many", "msg_4")).toBeUndefined();
    await replay(named("many", "msg_1", "2-0"));
    await end(named("many", "msg_5"));
    expect(await listed()).toEqual(["msg_1", "msg_2", "msg_3", "msg_5"]);
    await lab.redis.del(webhookKeys.delivery("many", "msg_2"));
    await begin(named("many", "msg_6"));
    expect(await listed()).toEqual(["msg_1", "msg_3", "msg_5", "msg_6"]);
    expect((await lab.redis.zrange(webhookKeys.ended("many"), "0", "-1")).sort()).toEqual(["msg_3", "msg_5"]);
  });

  it("is forgotten where ten times as many are pending: its run is told, as one that is replaced is", async () => {
    const first = named("pending", "msg_0");
    for (let i = 0; i < 10 * kept.most; i++) await begin(named("pending", `msg_${i}`));
    const again = named("pending", "msg_0", "2-0");
    expect(await beginDelivery(lab.redis, again, kept, undefined)).toEqual({ said: "begun", replaced: [first] });
    expect(await beginDelivery(lab.redis, again, kept, undefined)).toEqual({ said: "begun", replaced: [] });
    const newest = named("pending", "msg_newest");
    expect(await beginDelivery(lab.redis, newest, kept, content)).toEqual({ said: "begun", replaced: [again] });
    expect(await readDelivery(lab.redis, "pending", "msg_0")).toBeUndefined();
  });

  it("is replayed so often in all and in a minute, and a tenant's no more often together", async () => {
    const ask = (tenant: string, name: string) => noteReplay(lab.redis, tenant, "msg_1", name);
    const key = webhookKeys.delivery("replays", "msg_1");
    expect(await ask("replays", "none")).toBe("unknown");
    await begin(named("replays", "msg_1"));
    const said: string[] = [];
    // A minute may end meanwhile.
    for (let i = 0; i < 2 * replayLimits.lately + 1 && said.at(-1) !== "often"; i++)
      said.push(await ask("replays", `r${i}`));
    expect(said.at(-1)).toBe("often");
    expect(said.length).toBeGreaterThan(replayLimits.lately);
    expect(await ask("replays", `r${said.length - 2}`)).toBe("granted");
    await lab.redis.hset(key, "minute", "1");
    expect(await ask("replays", "later")).toBe("granted");
    expect(await lab.redis.hget(key, "replays")).toBe(String(said.length));
    await lab.redis.set(webhookKeys.replays("replays"), replayLimits.tenant, "PX", MINUTE);
    await lab.redis.hset(key, "minute", "1");
    expect(await ask("replays", "others")).toBe("tenant");
    await lab.redis.hset(key, "replays", replayLimits.delivery);
    expect(await ask("replays", "last")).toBe("spent");
  });

  it("is found where it is pending for too long, and not once it has ended or is forgotten", async () => {
    const overdue = async () =>
      (await overdueDeliveries(lab.redis, 30_000, 100)).filter(({ tenant }) => tenant === "lost");
    const [one, other] = [named("lost", "msg_1"), named("lost", "msg_2")];
    for (const run of [one, other]) await begin(run);
    expect(await overdue()).toEqual([]);
    for (const { message } of [one, other]) await lab.redis.zadd(webhookKeys.pending, 1, `lost:${message}`);
    expect((await overdue()).map(({ message }) => message)).toEqual(["msg_1", "msg_2"]);
    await end(one);
    await noteLooked(lab.redis, other, true);
    expect(await overdue()).toEqual([]);
    await noteLooked(lab.redis, other, false);
    expect(await lab.redis.zscore(webhookKeys.pending, "lost:msg_2")).toBeNull();
    await noteLooked(lab.redis, other, true);
    expect(await lab.redis.zscore(webhookKeys.pending, "lost:msg_2")).toBeNull();
  });
});
