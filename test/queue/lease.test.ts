import { describe, expect, it } from "vitest";
import { GROUP, laneKeys, outcomeKey, sequenceKeys } from "#shared/keys.js";
import { giveOutcome } from "#shared/queue/give-outcome.js";
import { abandon } from "../../worker/queue/abandon.js";
import { beginAlone } from "../../worker/queue/begin-alone.js";
import { commit } from "../../worker/queue/commit.js";
import { discard } from "../../worker/queue/discard.js";
import { release } from "../../worker/queue/release.js";
import { renew } from "../../worker/queue/renew.js";
import { reclaim } from "../../worker/queue/reclaim.js";
import { readNew, readOwned } from "../../worker/queue/stream.js";
import {
  IDLE_MS,
  SEQUENCE,
  admitRequest,
  admitStep,
  admitStream,
  outcomeFields,
  put,
  result,
  take,
  takeOne,
  useLab,
} from "./lab.js";

describe("renew", () => {
  const lab = useLab();

  it("extends the lease of an owned entry, so that nobody reclaims it", async () => {
    await admitRequest(lab, "r1");
    const { entry } = await takeOne(lab.queue);
    await lab.redis.xclaim(laneKeys(lab.lane).ready, GROUP, "a.1", 0, entry, "IDLE", 5_000, "JUSTID");
    expect((await renew(lab.queue, [entry])).lost).toEqual([]);
    expect((await reclaim(lab.other, 4_000, 10, "0-0")).deliveries).toEqual([]);
  });

  it("cannot take an entry back from its new owner", async () => {
    await admitRequest(lab, "r1");
    const { entry } = await takeOne(lab.queue);
    await reclaim(lab.other, 0, 10, "0-0");
    expect((await renew(lab.queue, [entry])).lost).toEqual([entry]);
    expect((await renew(lab.other, [entry])).lost).toEqual([]);
  });
});

describe("reclaim", () => {
  const lab = useLab();

  it("takes only what has been silent for a lease", async () => {
    await admitRequest(lab, "r1");
    await takeOne(lab.queue);
    expect((await reclaim(lab.other, 60_000, 10, "0-0")).deliveries).toEqual([]);
    expect((await reclaim(lab.other, 0, 10, "0-0")).deliveries).toMatchObject([{ request: "r1" }]);
  });

  it("names entries that were deleted from outside", async () => {
    await admitRequest(lab, "r1");
    const { entry } = await takeOne(lab.queue);
    await lab.redis.xdel(laneKeys(lab.lane).ready, entry);
    expect(await reclaim(lab.other, 0, 10, "0-0")).toMatchObject({ deleted: [entry], deliveries: [] });
  });
});

describe("beginAlone", () => {
  const lab = useLab();

  it("counts runs, and convicts after the last one allowed", async () => {
    await admitRequest(lab, "r1");
    const { entry } = await takeOne(lab.queue);
    const said = [];
    for (let i = 0; i < 4; i++) said.push(await beginAlone(lab.queue, entry, 3, `run ${i}`));
    expect(said).toEqual(["run", "run", "run", "poison"]);
  });

  it("counts a run once, however often it is announced", async () => {
    await admitRequest(lab, "r1");
    const { entry } = await takeOne(lab.queue);
    const said = [];
    for (let i = 0; i < 4; i++) said.push(await beginAlone(lab.queue, entry, 1, "run 1"));
    expect(said).toEqual(["run", "run", "run", "run"]);
    expect(await beginAlone(lab.queue, entry, 1, "run 2")).toBe("poison");
  });

  it("is refused to a worker that lost the entry", async () => {
    await admitRequest(lab, "r1");
    const { entry } = await takeOne(lab.queue);
    await reclaim(lab.other, 0, 10, "0-0");
    expect(await beginAlone(lab.queue, entry, 3, "run")).toBe("lost");
  });

  it("is forgotten with the commit", async () => {
    await admitRequest(lab, "r1");
    const delivery = await takeOne(lab.queue);
    await beginAlone(lab.queue, delivery.entry, 3, "run");
    await commit(lab.queue, [result(delivery, { action: "drop" })], undefined);
    expect(await lab.redis.exists(laneKeys(lab.lane).runs)).toBe(0);
  });
});

describe("abandon", () => {
  const lab = useLab();

  it("frees all entries of a dead worker at once, and none of a living one", async () => {
    await admitRequest(lab, "r1");
    await takeOne(lab.queue);
    await admitRequest(lab, "r2");
    await takeOne(lab.other);
    expect(await abandon(lab.queue)).toBe(1);
    const taken = await reclaim({ ...lab.queue, consumer: "c.1" }, 60_000, 10, "0-0");
    expect(taken.deliveries).toMatchObject([{ request: "r1" }]);
  });
});

describe("release", () => {
  const lab = useLab();

  it("makes a step ready again, uncharged, and its sequence follow the new entry", async () => {
    await admitStep(lab, { request: "r1", start: true });
    const first = await takeOne(lab.queue);
    await beginAlone(lab.queue, first.entry, 3, "run");
    expect(await release(lab.queue, [first])).toBe(1);
    expect(await lab.redis.exists(laneKeys(lab.lane).runs)).toBe(0);
    const again = await takeOne(lab.other);
    expect(again).toMatchObject({ request: "r1", step: 1, start: true });
    expect(again.entry).not.toBe(first.entry);
    expect(await commit(lab.queue, [result(first, put("zombie"))], IDLE_MS)).toEqual(["lost"]);
    expect(await commit(lab.other, [result(again, put("s"))], IDLE_MS)).toEqual(["committed"]);
  });

  it("leaves what is no longer owned alone", async () => {
    await admitRequest(lab, "r1");
    const delivery = await takeOne(lab.queue);
    await reclaim(lab.other, 0, 10, "0-0");
    expect(await release(lab.queue, [delivery])).toBe(0);
    expect(await take(lab.queue)).toEqual([]);
  });
});

describe("readOwned", () => {
  const lab = useLab();

  it("gives again what was delivered under a lost reply", async () => {
    await admitRequest(lab, "r1");
    await takeOne(lab.queue);
    expect((await readOwned(lab.queue, 10)).deliveries).toMatchObject([{ request: "r1" }]);
    expect((await readOwned(lab.other, 10)).deliveries).toEqual([]);
  });
});

describe("discard", () => {
  const lab = useLab();

  it("sets aside what is not a step", async () => {
    const { ready, dead } = laneKeys(lab.lane);
    await lab.redis.xadd(ready, "*", "x", "y");
    const { unreadable } = await readNew(lab.queue, 10, 1);
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
    await admitStep(lab, { request: "r1", start: true });
    const key = outcomeKey(lab.lane, "r1");
    expect(await giveOutcome(lab.redis, [key], ["error", "a", 1_000])).toEqual({ said: "given" });
    expect(await giveOutcome(lab.redis, [key], ["error", "b", 1_000])).toEqual({
      said: "known",
      outcome: { kind: "error", body: Buffer.from("a") },
    });
  });

  it("says when there is no such request", async () => {
    expect(await giveOutcome(lab.redis, [outcomeKey(lab.lane, "none")], ["error", "a", 1_000])).toEqual({
      said: "unknown",
    });
  });

  it("leaves the sequence as it stands", async () => {
    await admitStep(lab, { request: "r1", start: true });
    await giveOutcome(lab.redis, [outcomeKey(lab.lane, "r1")], ["error", "a", 1_000]);
    expect(await lab.redis.hget(sequenceKeys(lab.lane, SEQUENCE).seq, "next")).toBe("1");
  });

  it("notes when", async () => {
    await admitStep(lab, { request: "r1", start: true });
    await giveOutcome(lab.redis, [outcomeKey(lab.lane, "r1")], ["error", "a", 1_000]);
    const { at, ended } = await outcomeFields(lab, "r1");
    expect(Number(ended)).toBeGreaterThanOrEqual(Number(at));
  });

  it("never keeps the outcome for less than admission said", async () => {
    await admitStep(lab, { request: "r1", start: true });
    await giveOutcome(lab.redis, [outcomeKey(lab.lane, "r1")], ["error", "a", 1_000]);
    await admitStep(lab, { request: "r2" });
    await giveOutcome(lab.redis, [outcomeKey(lab.lane, "r2")], ["error", "a", 100_000]);
    const [first = 0, second = 0] = await Promise.all(
      ["r1", "r2"].map((id) => lab.redis.pttl(outcomeKey(lab.lane, id))),
    );
    expect(first).toBeGreaterThan(1_000);
    expect(first).toBeLessThanOrEqual(60_000);
    expect(second).toBeGreaterThan(60_000);
    expect(second).toBeLessThanOrEqual(100_000);
  });

  it("leaves a sealed stream to its owner, unless none can commit it any more", async () => {
    await admitStream(lab, "r1");
    const key = outcomeKey(lab.lane, "r1");
    await lab.redis.hset(key, "sealed", "1");
    expect(await giveOutcome(lab.redis, [key], ["error", "a", 1_000])).toEqual({ said: "sealed" });
    expect(await outcomeFields(lab, "r1")).not.toHaveProperty("kind");
    expect(await giveOutcome(lab.redis, [key], ["error", "a", 1_000, 1])).toEqual({ said: "given" });
    expect(await giveOutcome(lab.redis, [key], ["error", "b", 1_000, 1])).toMatchObject({ said: "known" });
  });
});
