import { describe, expect, it } from "vitest";
import { encodedIdOf } from "#shared/queue/address.js";
import { GROUP, laneKeys, sequencesKey } from "#shared/queue/keys.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { mendSequence } from "#shared/queue/work/commit/mend-sequence.js";
import { orphans } from "#shared/queue/work/liveness/orphans.js";
import { reapConsumers } from "#shared/queue/reap-consumers.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import { requeue } from "#shared/queue/work/read/requeue.js";
import { IDLE_MS, SEQUENCE, put, result, useLab } from "../support/queue/lab.js";
import { changeFacts, factsOf } from "../support/queue/facts.js";
import { whileReconciling } from "../support/queue/reconciling.js";

describe("requeue", () => {
  const lab = useLab();

  it("finds nothing while every entry is pending or still to come", async () => {
    await lab.admitRequest("r1");
    await lab.takeOne();
    await lab.admitRequest("r2");
    expect(await orphans(lab.queue, 100)).toEqual([]);
  });

  it("brings back entries whose consumer was deleted with them", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const first = await lab.takeOne();
    await lab.redis.xgroup("DELCONSUMER", laneKeys(lab.lane).ready, GROUP, "a.1");
    const found = await orphans(lab.queue, 100);
    expect(found).toMatchObject([{ entry: first.entry }]);
    expect(await requeue(lab.queue, found)).toBe(1);
    const again = await lab.takeOne(lab.other);
    expect(await commit(lab.other, [result(again, put("s"))], IDLE_MS)).toEqual(["committed"]);
  });

  it("finds a lost entry beside others, also when what was next to come has been withdrawn before", async () => {
    const { ready } = laneKeys(lab.lane);
    await lab.admitRequest("r1");
    const first = await lab.takeOne();
    await lab.admitRequest("r2");
    const [newest] = await lab.redis.xrevrange(ready, "+", "-", "COUNT", 1);
    await lab.redis.xdel(ready, newest?.[0] ?? "");
    for (const request of ["r3", "r4", "r5"]) await lab.admitRequest(request);
    const held = await lab.take();
    expect(held).toHaveLength(3);
    expect(await orphans(lab.queue, 100)).toEqual([]);
    // The middle entry is lost: the count of delivered entries shows that.
    const [, middle] = held;
    await lab.redis.xack(ready, GROUP, middle?.entry ?? "");
    expect(await orphans(lab.queue, 100)).toMatchObject([{ request: "r4" }]);
    // While more entries are to come, a lost entry is found once it is the oldest.
    await lab.admitRequest("r6");
    expect(await orphans(lab.queue, 100)).toEqual([]);
    const finished = [first, held[0]].map((delivery) => delivery?.entry ?? "");
    await lab.redis
      .multi()
      .xack(ready, GROUP, ...finished)
      .xdel(ready, ...finished)
      .exec();
    expect(await orphans(lab.queue, 100)).toMatchObject([{ request: "r4" }]);
  });

  it("leaves an entry that somebody took meanwhile", async () => {
    await lab.admitRequest("r1");
    const delivery = await lab.takeOne();
    expect(await requeue(lab.queue, [delivery])).toBe(0);
  });
});

describe("mendSequence", () => {
  const lab = useLab();

  it("leaves a sound sequence alone", async () => {
    await lab.admitStep({ request: "r1", start: true });
    expect(await mendSequence(lab.queue, SEQUENCE)).toBeUndefined();
    expect(await lab.take()).toHaveLength(1);
  });

  it("fails a sequence whose ready step was deleted, names the request, and lets the waiting steps be refused", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.admitStep({ request: "r2" });
    const { entry } = await lab.takeOne();
    await lab.redis.xdel(laneKeys(lab.lane).ready, entry);
    expect(await mendSequence(lab.queue, SEQUENCE)).toEqual(lab.addressOf("r1"));
    expect(await lab.takeOne()).toMatchObject({ request: "r2", step: 2, from: "!" });
    expect(await lab.admitStep({ request: "r3" })).toEqual({ said: "start-required", why: "cancelled" });
  });

  it("frees the id when nothing waits", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const { entry } = await lab.takeOne();
    await lab.redis.xdel(laneKeys(lab.lane).ready, entry);
    await mendSequence(lab.queue, SEQUENCE);
    expect(await factsOf(lab.redis, lab.lane, SEQUENCE)).toBeUndefined();
    expect(await lab.redis.zcard(laneKeys(lab.lane).live)).toBe(0);
  });

  it("forgets a sequence that is gone", async () => {
    await lab.redis.zadd(laneKeys(lab.lane).live, "+inf", SEQUENCE);
    expect(await mendSequence(lab.queue, SEQUENCE)).toBeUndefined();
    expect(await lab.redis.zcard(laneKeys(lab.lane).live)).toBe(0);
  });
});

describe("a round of the reconciler", () => {
  const lab = useLab();

  it("mends a sequence that went on soon after a step, and whose entry was deleted", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
    await lab.admitStep({ request: "r2" });
    const { ready, live } = laneKeys(lab.lane);
    const { entry } = await lab.takeOne();
    // As if the entry had been queued long ago.
    await lab.redis.xdel(ready, entry);
    await changeFacts(lab.redis, lab.lane, SEQUENCE, { entry: "1-1" });
    expect(await lab.redis.zscore(live, SEQUENCE)).not.toBe("inf");
    await whileReconciling(lab.queue, IDLE_MS, async () => {
      await expect.poll(() => factsOf(lab.redis, lab.lane, SEQUENCE), { timeout: 10_000 }).toBeUndefined();
      await expect.poll(() => lab.outcomeFields("r2")).toMatchObject({ kind: "error" });
    });
  });
});

describe("reapIdle", () => {
  const lab = useLab();

  async function idle(sequence: string): Promise<void> {
    await lab.admitStep({ request: `r-${encodedIdOf(sequence)}`, start: true, sequence });
    await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
  }
  const lapse = async (sequence: string) => {
    await changeFacts(lab.redis, lab.lane, sequence, { lapses: 1 });
    await lab.redis.zadd(laneKeys(lab.lane).live, 1, sequence);
  };

  it("removes what has idled out, state and all, and nothing else", async () => {
    for (const sequence of ["default:u1", "default:u2", "default:u3"]) await idle(sequence);
    await lab.admitStep({ request: "busy", sequence: "default:u3" });
    for (const sequence of ["default:u1", "default:u3"]) await lapse(sequence);
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(2);
    expect(await factsOf(lab.redis, lab.lane, "default:u1")).toBeUndefined();
    expect(await lab.statesOf("default:u1")).toEqual([]);
    for (const sequence of ["default:u2", "default:u3"]) expect(await lab.currentState(sequence)).toBe("s");
    // A busy sequence in the list of idle sequences is listed as busy again.
    expect(await lab.redis.zscore(laneKeys(lab.lane).live, "default:u3")).toBe("inf");
    expect(await lab.redis.zcard(laneKeys(lab.lane).live)).toBe(2);
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(0);
  });

  it("removes as many as it is told in one call", async () => {
    for (const sequence of ["default:u1", "default:u2", "default:u3"]) {
      await idle(sequence);
      await lapse(sequence);
    }
    expect(await reapIdle(lab.queue, 2, IDLE_MS)).toBe(2);
    expect(await reapIdle(lab.queue, 2, IDLE_MS)).toBe(1);
    expect(await lab.redis.keys(`*${lab.lane.model}:default:u*`)).toEqual([]);
  });
});

describe("reapConsumers", () => {
  const lab = useLab();

  it("forgets silent consumers, but none that still owns an entry", async () => {
    await lab.admitRequest("r1");
    await lab.takeOne();
    await lab.take(lab.other);
    await lab.redis.xgroup("CREATECONSUMER", laneKeys(lab.lane).ready, GROUP, "gone.1");
    expect(await reapConsumers(lab.redis, laneKeys(lab.lane).ready, GROUP, -1)).toBeGreaterThan(0);
    const left = (await lab.redis.xinfo("CONSUMERS", laneKeys(lab.lane).ready, GROUP)) as string[][];
    expect(left.map((info) => info[1])).toEqual(["a.1"]);
  });

  it("drops a sequence whose facts somebody has made unreadable, and goes on", async () => {
    for (const sequence of ["default:u1", "default:u2"]) {
      await lab.admitStep({ request: `r-${encodedIdOf(sequence)}`, start: true, sequence });
    }
    await commit(
      lab.queue,
      (await lab.take()).map((delivery) => result(delivery, put("s"))),
      IDLE_MS,
    );
    await lab.redis.hset(sequencesKey(lab.lane), "default:u1", "no facts");
    await lab.redis.zadd(laneKeys(lab.lane).live, 1, "default:u1");
    await changeFacts(lab.redis, lab.lane, "default:u2", { lapses: 1 });
    await lab.redis.zadd(laneKeys(lab.lane).live, 1, "default:u2");
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(2);
    expect(await lab.redis.hlen(sequencesKey(lab.lane))).toBe(0);
    expect(await lab.redis.zcard(laneKeys(lab.lane).live)).toBe(0);
  });
});
