import { describe, expect, it } from "vitest";
import { GROUP, laneKeys, sequenceKeys } from "#shared/keys.js";
import { commit } from "../../worker/queue/commit.js";
import { isUpTo, mendSequence, orphans, reapConsumers, requeue } from "../../worker/queue/reconcile.js";
import { IDLE_MS, SEQUENCE, admitRequest, admitStep, put, result, take, takeOne, useLab } from "./lab.js";

describe("requeue", () => {
  const lab = useLab();

  it("finds nothing while every entry is pending or still to come", async () => {
    await admitRequest(lab, "r1");
    await takeOne(lab.queue);
    await admitRequest(lab, "r2");
    expect(await orphans(lab.queue, 100)).toEqual([]);
  });

  it("brings back entries whose consumer was deleted with them", async () => {
    await admitStep(lab, { request: "r1", start: true });
    const first = await takeOne(lab.queue);
    await lab.redis.xgroup("DELCONSUMER", laneKeys(lab.lane).ready, GROUP, "a.1");
    const found = await orphans(lab.queue, 100);
    expect(found).toMatchObject([{ entry: first.entry }]);
    expect(await requeue(lab.queue, found)).toBe(1);
    const again = await takeOne(lab.other);
    expect(await commit(lab.other, [result(again, put("s"))], IDLE_MS)).toEqual(["committed"]);
  });

  it("finds a lost entry beside others, also when what was next to come has been withdrawn before", async () => {
    const { ready } = laneKeys(lab.lane);
    await admitRequest(lab, "r1");
    const first = await takeOne(lab.queue);
    await admitRequest(lab, "r2");
    const [newest] = await lab.redis.xrevrange(ready, "+", "-", "COUNT", 1);
    await lab.redis.xdel(ready, newest?.[0] ?? "");
    for (const request of ["r3", "r4", "r5"]) await admitRequest(lab, request);
    const held = await take(lab.queue);
    expect(held).toHaveLength(3);
    expect(await orphans(lab.queue, 100)).toEqual([]);
    // Lost in the middle: the count of those that were delivered says so.
    const [, middle] = held;
    await lab.redis.xack(ready, GROUP, middle?.entry ?? "");
    expect(await orphans(lab.queue, 100)).toMatchObject([{ request: "r4" }]);
    // With more to come, it is found once it is the oldest.
    await admitRequest(lab, "r6");
    expect(await orphans(lab.queue, 100)).toEqual([]);
    const finished = [first, held[0]].map((delivery) => delivery?.entry ?? "");
    await lab.redis
      .multi()
      .xack(ready, GROUP, ...finished)
      .xdel(ready, ...finished)
      .exec();
    expect(await orphans(lab.queue, 100)).toMatchObject([{ request: "r4" }]);
  });

  it.each([
    ["1-1", "1-1", true],
    ["1-9", "1-10", true],
    ["2-0", "1-10", false],
    ["9-0", "10-0", true],
  ])("knows whether %s is up to %s", (id, other, expected) => {
    expect(isUpTo(id, other)).toBe(expected);
  });

  it("leaves an entry that somebody took meanwhile", async () => {
    await admitRequest(lab, "r1");
    const delivery = await takeOne(lab.queue);
    expect(await requeue(lab.queue, [delivery])).toBe(0);
  });
});

describe("mendSequence", () => {
  const lab = useLab();

  it("leaves a sound sequence alone", async () => {
    await admitStep(lab, { request: "r1", start: true });
    expect(await mendSequence(lab.queue, SEQUENCE)).toBeUndefined();
    expect(await take(lab.queue)).toHaveLength(1);
  });

  it("fails a sequence whose ready step was deleted, names the request, and lets the waiting steps be refused", async () => {
    await admitStep(lab, { request: "r1", start: true });
    await admitStep(lab, { request: "r2" });
    const { entry } = await takeOne(lab.queue);
    await lab.redis.xdel(laneKeys(lab.lane).ready, entry);
    expect(await mendSequence(lab.queue, SEQUENCE)).toBe("r1");
    expect(await takeOne(lab.queue)).toMatchObject({ request: "r2", step: 2, from: "!" });
    expect(await admitStep(lab, { request: "r3" })).toEqual({ said: "start-required" });
  });

  it("frees the id when nothing waits", async () => {
    await admitStep(lab, { request: "r1", start: true });
    const { entry } = await takeOne(lab.queue);
    await lab.redis.xdel(laneKeys(lab.lane).ready, entry);
    await mendSequence(lab.queue, SEQUENCE);
    expect(await lab.redis.exists(sequenceKeys(lab.lane, SEQUENCE).seq)).toBe(0);
    expect(await lab.redis.zcard(laneKeys(lab.lane).live)).toBe(0);
  });

  it("forgets a sequence that is gone", async () => {
    await lab.redis.zadd(laneKeys(lab.lane).live, "+inf", SEQUENCE);
    expect(await mendSequence(lab.queue, SEQUENCE)).toBeUndefined();
    expect(await lab.redis.zcard(laneKeys(lab.lane).live)).toBe(0);
  });
});

describe("reapConsumers", () => {
  const lab = useLab();

  it("forgets silent consumers, but none that still owns an entry", async () => {
    await admitRequest(lab, "r1");
    await takeOne(lab.queue);
    await take(lab.other);
    await lab.redis.xgroup("CREATECONSUMER", laneKeys(lab.lane).ready, GROUP, "gone.1");
    expect(await reapConsumers(lab.queue, -1)).toBeGreaterThan(0);
    const left = (await lab.redis.xinfo("CONSUMERS", laneKeys(lab.lane).ready, GROUP)) as string[][];
    expect(left.map((info) => info[1])).toEqual(["a.1"]);
  });
});
