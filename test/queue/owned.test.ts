import { describe, expect, it } from "vitest";
import { laneKeys, outcomeKey } from "#shared/queue/keys.js";
import { beginAlone } from "#shared/queue/work/read/begin-alone.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { discard } from "#shared/queue/work/read/discard.js";
import { release } from "#shared/queue/work/read/release.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { lanesByKey, readOwned, waitForNew } from "#shared/queue/work/stream.js";
import { IDLE_MS, SEQUENCE, put, result, useLab } from "../support/queue/lab.js";
import { factsOf } from "../support/queue/facts.js";

describe("beginAlone", () => {
  const lab = useLab();

  it("counts runs, and convicts after the last one allowed", async () => {
    await lab.admitRequest("r1");
    const delivery = await lab.takeOne();
    const said = [];
    for (let i = 0; i < 4; i++) said.push(await beginAlone(lab.queue, delivery, 3, `run ${i}`));
    expect(said).toEqual(["run", "run", "run", "poison"]);
  });

  it("counts a run once, however often it is announced", async () => {
    await lab.admitRequest("r1");
    const delivery = await lab.takeOne();
    const said = [];
    for (let i = 0; i < 4; i++) said.push(await beginAlone(lab.queue, delivery, 1, "run 1"));
    expect(said).toEqual(["run", "run", "run", "run"]);
    expect(await beginAlone(lab.queue, delivery, 1, "run 2")).toBe("poison");
  });

  it("is refused to a worker that lost the entry", async () => {
    await lab.admitRequest("r1");
    const delivery = await lab.takeOne();
    await takeFrom(lab.other, lab.queue.consumer, 10);
    expect(await beginAlone(lab.queue, delivery, 3, "run")).toBe("lost");
  });

  it("is forgotten with the commit", async () => {
    await lab.admitRequest("r1");
    const delivery = await lab.takeOne();
    await beginAlone(lab.queue, delivery, 3, "run");
    await commit(lab.queue, [result(delivery, { action: "drop" })], undefined);
    expect(await lab.redis.exists(laneKeys(lab.lane).runs)).toBe(0);
  });
});

describe("release", () => {
  const lab = useLab();

  it("makes a step ready again, uncharged, and its sequence follow the new entry", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const first = await lab.takeOne();
    await beginAlone(lab.queue, first, 3, "run");
    expect(await release(lab.queue, [first])).toBe(1);
    expect(await lab.redis.exists(laneKeys(lab.lane).runs)).toBe(0);
    const again = await lab.takeOne(lab.other);
    expect(again).toMatchObject({ request: "r1", step: 1, start: true });
    expect(again.entry).not.toBe(first.entry);
    expect(await commit(lab.queue, [result(first, put("zombie"))], IDLE_MS)).toEqual(["lost"]);
    expect(await commit(lab.other, [result(again, put("s"))], IDLE_MS)).toEqual(["committed"]);
  });

  it("leaves what is no longer owned alone", async () => {
    await lab.admitRequest("r1");
    const delivery = await lab.takeOne();
    await takeFrom(lab.other, lab.queue.consumer, 10);
    expect(await release(lab.queue, [delivery])).toBe(0);
    expect(await lab.take()).toEqual([]);
  });
});

describe("readOwned", () => {
  const lab = useLab();

  it("gives again what was delivered under a lost reply", async () => {
    await lab.admitRequest("r1");
    await lab.takeOne();
    expect((await readOwned(lab.redis, lab.queue.consumer, lanesByKey([lab.lane]), 10)).deliveries).toMatchObject([
      { request: "r1" },
    ]);
    expect((await readOwned(lab.redis, lab.other.consumer, lanesByKey([lab.lane]), 10)).deliveries).toEqual([]);
  });
});

describe("discard", () => {
  const lab = useLab();

  it("sets aside what is not a step", async () => {
    const { ready, dead } = laneKeys(lab.lane);
    await lab.redis.xadd(ready, "*", "x", "y");
    const { unreadable } = await waitForNew(lab.redis, lab.queue.consumer, lanesByKey([lab.lane]), 1, 1);
    expect(unreadable).toHaveLength(1);
    expect(await discard(lab.queue, unreadable)).toBe(1);
    expect(await lab.redis.xlen(ready)).toBe(0);
    expect((await lab.redis.xrange(dead, "-", "+"))[0]?.[1]).toEqual(["reason", "unreadable", "x", "y"]);
    expect(await discard(lab.queue, unreadable)).toBe(0);
  });
});

describe("giveOutcome", () => {
  const lab = useLab();

  it("ends a request that has no outcome, once", async () => {
    await lab.admitStep({ request: "r1", start: true });
    expect(await lab.giveError("r1", "a")).toMatchObject({ said: "given" });
    expect(await lab.giveError("r1", "b")).toEqual({
      said: "known",
      outcome: { kind: "error", body: Buffer.from("a") },
    });
  });

  it("says when there is no such request", async () => {
    expect(await lab.giveError("none", "a")).toEqual({ said: "unknown" });
  });

  it("leaves the sequence as it stands", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.giveError("r1", "a");
    expect((await factsOf(lab.redis, lab.lane, SEQUENCE))?.next).toBe(1);
  });

  it("notes when", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.giveError("r1", "a");
    const { at, ended } = await lab.outcomeFields("r1");
    expect(Number(ended)).toBeGreaterThanOrEqual(Number(at));
  });

  it("never keeps the outcome for less than admission said", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.giveError("r1", "a");
    await lab.admitStep({ request: "r2" });
    await lab.giveError("r2", "a", 100_000);
    const [first = 0, second = 0] = await Promise.all(
      ["r1", "r2"].map((id) => lab.redis.pttl(outcomeKey(lab.addressOf(id)))),
    );
    expect(first).toBeGreaterThan(1_000);
    expect(first).toBeLessThanOrEqual(60_000);
    expect(second).toBeGreaterThan(60_000);
    expect(second).toBeLessThanOrEqual(100_000);
  });

  it("leaves a sealed stream to its owner, unless none can commit it any more", async () => {
    await lab.admitStream("r1");
    const key = outcomeKey(lab.addressOf("r1"));
    await lab.redis.hset(key, "sealed", "1");
    expect(await lab.giveError("r1", "a")).toEqual({ said: "sealed" });
    expect(await lab.outcomeFields("r1")).not.toHaveProperty("kind");
    expect(await lab.giveError("r1", "a", 1_000, true)).toMatchObject({ said: "given" });
    expect(await lab.giveError("r1", "b", 1_000, true)).toMatchObject({ said: "known" });
  });
});
