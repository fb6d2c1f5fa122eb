/** The place of a sequence in the index of live sequences: never after its true end. */
import { describe, expect, it } from "vitest";
import type { Announcement } from "#shared/contract/announcement.js";
import { laneKeys } from "#shared/queue/keys.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import { timeAt } from "#shared/redis/clock.js";
import { describeFleet } from "../../gateway/fleet/describe.js";
import { changeFacts, factsOf } from "../support/queue/facts.js";
import { admit, applicant, IDLE_MS, LIMITS, put, result, SEQUENCE, useLab } from "../support/queue/lab.js";

describe.each([true, false])("the place of a sequence in the index (short scripts: %s)", (shortScripts) => {
  const lab = useLab();
  const place = async () => lab.redis.zscore(laneKeys(lab.lane).live, SEQUENCE);
  const lapses = async () => String((await factsOf(lab.redis, lab.lane, SEQUENCE))?.lapses);
  const change = (at: number) => changeFacts(lab.redis, lab.lane, SEQUENCE, { lapses: at });
  const now = async () => Math.ceil(await timeAt(lab.redis, laneKeys(lab.lane).live));
  let count = 0;

  /** A step of a client that waits for it, so that all of it may take the short way. */
  async function enter(start = false): Promise<void> {
    const request = `r${count++}`;
    const one = { ...applicant(lab.lane, request, request), attendedMs: undefined };
    const terms = { gateway: "gw", limits: LIMITS, shortScripts };
    const sequence = { name: SEQUENCE, start, end: false };
    expect(await admit(lab.redis, terms, [{ ...one, sequence }])).toEqual([{ said: "admitted" }]);
  }
  const finish = async () => commit({ ...lab.queue, shortScripts }, [result(await lab.takeOne(), put("s"))], IDLE_MS);

  it("is the last one while it is new, and its end once it rests", async () => {
    await enter(true);
    expect(await place()).toBe("inf");
    await finish();
    expect(await place()).toBe(await lapses());
  });

  it("stays while steps come in a row", async () => {
    await enter(true);
    await finish();
    const first = await place();
    // As if the last step had ended now, however slow this machine is.
    await change((await now()) + 2 * IDLE_MS);
    await enter();
    expect(await place()).toBe(first);
    await finish();
    expect(await place()).toBe(first);
    expect(Number(await lapses())).toBeGreaterThanOrEqual(Number(first));
  });

  it("moves with a step that comes a while after the last one", async () => {
    await enter(true);
    await finish();
    await change((await now()) + IDLE_MS / 2);
    await enter();
    await finish();
    expect(await place()).toBe(await lapses());
  });

  it("has no part in the count of live sequences", async () => {
    await enter(true);
    await finish();
    await lab.redis.zadd(laneKeys(lab.lane).live, 1, SEQUENCE);
    const { model: called, version, digest } = lab.lane;
    const model = { name: called, version, digest, sequence: {} };
    const worker = { worker: "w", startedAt: 0, models: [model], failed: [] } as unknown as Announcement;
    const asked = { redis: lab.redis, buckets: lab.lane.bucket + 1, unserved: [], tenant: "" };
    expect(await describeFleet({ ...asked, workers: [worker] })).toMatchObject({ models: [{ live_sequences: 1 }] });
  });

  it("is mended when its time has come, and so is the place of a busy one when it rests", async () => {
    await enter(true);
    await finish();
    const { live } = laneKeys(lab.lane);
    await lab.redis.zadd(live, 1, SEQUENCE);
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(1);
    expect(await place()).toBe(await lapses());
    await enter();
    await lab.redis.zadd(live, 1, SEQUENCE);
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(1);
    expect(await place()).toBe("inf");
    await change((await now()) + 2 * IDLE_MS);
    await finish();
    expect(await place()).toBe(await lapses());
  });
});
