/** Scripts note a sequence that idles out only if a webhook wants the event. */
import { describe, expect, it } from "vitest";
import {
  acknowledgeEvent,
  createEventsGroup,
  readEvents,
  removeIdleConsumers,
  takeOverEvents,
} from "#shared/queue/webhooks/outbox.js";
import { eventsKey, laneKeys, wantedKey } from "#shared/queue/keys.js";
import { fork } from "#shared/queue/sequences/fork.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import { noteWanted } from "#shared/queue/webhooks/note-wanted.js";
import { connectBlockingReader, whenReady } from "#shared/redis/connect.js";
import { changeFacts } from "../support/queue/facts.js";
import { IDLE_MS, put, result, SEQUENCE, useLab } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

const LAPSED_AT = 1_790_000_000_000;

describe("events of sequences", () => {
  const lab = useLab();
  let count = 0;
  const outbox = eventsKey(0);
  const noted = async () => {
    const entries = await lab.redis.xrange(outbox, "-", "+");
    await lab.redis.del(outbox, wantedKey(0));
    return entries.map(([, [, tenant, , type, , facts]]) => [tenant, type, JSON.parse(String(facts))]);
  };
  const want = (tenant = "default") =>
    noteWanted(lab.redis, [0], { tenant, revision: 1, events: ["sequence.expired"] });
  const step = async (flags: { start?: boolean; end?: boolean } = {}) => {
    expect(await lab.admitStep({ request: `e${count++}`, ...flags })).toMatchObject({ said: "admitted" });
    await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
  };
  /** A sequence of two steps whose time has passed. */
  const lapse = async () => {
    await step({ start: true });
    await step({ start: true });
    await step();
    await changeFacts(lab.redis, lab.lane, SEQUENCE, { lapses: LAPSED_AT });
    await lab.redis.zadd(laneKeys(lab.lane).live, LAPSED_AT, SEQUENCE);
  };
  const told = (last?: number) => ({
    model: lab.lane.model,
    version: lab.lane.version,
    sequence: "u7",
    steps: 2,
    ...(last !== undefined && { last: String(last) }),
  });

  it("are noted by who removes one, once", async () => {
    await want();
    await lapse();
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(1);
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(0);
    expect(await noted()).toEqual([["default", "sequence.expired", told(LAPSED_AT - IDLE_MS)]]);
  });

  it("are not noted where nobody wants them", async () => {
    await want("other");
    await lapse();
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(1);
    expect(await noted()).toEqual([]);
    await lab.redis.set(wantedKey(0), "of another form");
    await lapse();
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(1);
    expect(await noted()).toEqual([]);
  });

  it("are noted by a START that comes before the sequence is removed", async () => {
    await want();
    await lapse();
    await step({ start: true, end: true });
    expect(await noted()).toEqual([["default", "sequence.expired", told()]]);
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(0);
  });

  it("are noted by a fork that takes the id", async () => {
    await want();
    await lapse();
    const sequence = "default:u8";
    expect(await lab.admitStep({ request: `e${count++}`, start: true, sequence })).toMatchObject({ said: "admitted" });
    await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
    const { bucket, model } = lab.lane;
    const terms = { maxIdleMs: IDLE_MS, liveSequences: 10, buckets: 1 };
    expect(await fork(lab.redis, { bucket, model, name: sequence }, SEQUENCE, terms)).toMatchObject({ said: "forked" });
    expect(await noted()).toEqual([["default", "sequence.expired", told(LAPSED_AT - IDLE_MS)]]);
  });

  it("are wanted as the highest revision says", async () => {
    const [key, tenant] = [wantedKey(0), "default"];
    await noteWanted(lab.redis, [0], { tenant, revision: 5, events: ["sequence.expired"] });
    await noteWanted(lab.redis, [0], { tenant, revision: 4, events: [] });
    expect(await lab.redis.hget(key, tenant)).toBe("5|sequence.expired");
    await noteWanted(lab.redis, [0], { tenant, revision: 6, events: [] });
    expect(await lab.redis.hget(key, tenant)).toBe("6|");
  });
});

describe("the outbox", () => {
  const lab = useLab();

  it("gives each entry to one, and what that one leaves lying to another", async () => {
    const key = eventsKey(3);
    await createEventsGroup(lab.redis, key);
    await createEventsGroup(lab.redis, key);
    const reader = connectBlockingReader({ url: lab.url, name: "reader", log: silentLog });
    await whenReady(reader, AbortSignal.timeout(60_000));
    for (const tenant of ["a", "b"]) await lab.redis.xadd(key, "*", "t", tenant, "e", "sequence.expired", "d", "{}");
    const taken = await readEvents(reader, [key], "first", 10);
    expect(taken.map(({ tenant, type, facts }) => [tenant, type, facts])).toEqual([
      ["a", "sequence.expired", "{}"],
      ["b", "sequence.expired", "{}"],
    ]);
    expect(await readEvents(reader, [key], "second", 10)).toEqual([]);
    const [first, second] = taken;
    if (first === undefined || second === undefined) throw new Error("nothing was taken");
    await acknowledgeEvent(lab.redis, first);
    expect(await takeOverEvents(lab.redis, key, "second", 60_000)).toEqual({ entries: [], next: undefined });
    expect(await takeOverEvents(lab.redis, key, "second", 0)).toEqual({ entries: [second], next: undefined });
    await removeIdleConsumers(lab.redis, key, -1);
    expect(await lab.redis.xpending(key, "jobs", "-", "+", 10)).toHaveLength(1);
    await acknowledgeEvent(lab.redis, second);
    expect(await lab.redis.xlen(key)).toBe(0);
    await removeIdleConsumers(lab.redis, key, -1);
    expect(await lab.redis.call("XINFO", "CONSUMERS", key, "jobs")).toEqual([]);
    reader.disconnect();
  });
});
