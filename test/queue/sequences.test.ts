/**
 * A sequence as a whole: rolled back to an earlier step, forked, exported and imported elsewhere.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { decodeCheckpoint, encodeCheckpoint, nameRun } from "#shared/contract/checkpoint.js";
import { laneKeys } from "#shared/queue/keys.js";
import { exportSequence, type ExportedSequence } from "#shared/queue/sequences/export.js";
import { fork } from "#shared/queue/sequences/fork.js";
import { importSequence, stampForImport } from "#shared/queue/sequences/import.js";
import { rewind } from "#shared/queue/sequences/rewind.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import type { StateChange } from "#shared/queue/work/commit/settlement.js";
import { IDLE_MS, SEQUENCE, put, result, useLab } from "../support/queue/lab.js";
import { changeFacts } from "../support/queue/facts.js";

const DAY_MS = 86_400_000;
const KEPT = 3;
const OTHER = "default:u8";
const terms = { maxIdleMs: IDLE_MS, liveSequences: 10, buckets: 1 };

describe("a sequence", () => {
  const lab = useLab();
  const address = (name = SEQUENCE) => ({ bucket: lab.lane.bucket, model: lab.lane.model, name });
  const back = (step: number) => rewind(lab.redis, address(), step, IDLE_MS);
  let count = 0;

  async function step(state: StateChange, start = false, sequence = SEQUENCE) {
    expect(await lab.admitStep({ request: `r${count++}`, start, sequence })).toEqual({ said: "admitted" });
    const delivery = await lab.takeOne();
    await commit(lab.queue, [result(delivery, state)], IDLE_MS, KEPT);
    return delivery;
  }
  const lapse = async (sequence = SEQUENCE) => {
    await changeFacts(lab.redis, lab.lane, sequence, { lapses: 1 });
    await lab.redis.zadd(laneKeys(lab.lane).live, 1, sequence);
  };
  beforeEach(async () => {
    for (const state of ["s1", "s2", "s3", "s4"]) await step(put(state), state === "s1");
  });

  it("keeps the last checkpoints that its model asks for, and none from before a START", async () => {
    expect(await lab.statesOf()).toHaveLength(KEPT);
    await step(put("new"), true);
    expect(await lab.statesOf()).toHaveLength(1);
    await step(put("end"));
    await lapse();
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(1);
    expect(await lab.statesOf()).toEqual([]);
  });

  it("loses all of them when it fails", async () => {
    await step({ action: "fail" });
    expect(await lab.statesOf()).toEqual([]);
  });

  it("goes back to an earlier step, and on from there", async () => {
    expect(await back(2)).toMatchObject({ said: "rewound" });
    expect(await back(2)).toMatchObject({ said: "rewound" });
    expect(await lab.currentState()).toBe("s2");
    expect(await lab.statesOf()).toHaveLength(1);
    expect(await step(put("other"))).toMatchObject({ number: 3 });
    expect(await lab.currentState()).toBe("other");
    expect(await back(2)).toMatchObject({ said: "rewound" });
    expect(await lab.currentState()).toBe("s2");
  });

  it("goes back to a step that had no effect: to the state that it left", async () => {
    await step({ action: "keep" });
    await step(put("s6"));
    expect(await back(5)).toMatchObject({ said: "rewound" });
    expect(await lab.currentState()).toBe("s4");
    expect(await step(put("again"))).toMatchObject({ number: 6 });
  });

  it("counts from its latest START", async () => {
    for (const state of ["t1", "t2", "t3"]) await step(put(state), state === "t1");
    expect(await back(2)).toMatchObject({ said: "rewound" });
    expect(await lab.currentState()).toBe("t2");
    expect(await step(put("again"))).toMatchObject({ number: 3 });
  });

  it("says in words why it cannot go back", async () => {
    expect(await back(1)).toMatchObject({ said: "gone", view: { checkpoints: [2, 3, 4] } });
    expect(await back(5)).toMatchObject({ said: "future", view: { step: 4 } });
    expect(await rewind(lab.redis, address(OTHER), 1, IDLE_MS)).toEqual({ said: "unknown" });
    await lab.admitStep({ request: "busy" });
    expect(await back(2)).toMatchObject({ said: "busy", view: { step: 4 } });
    expect(await lab.currentState()).toBe("s4");
    await commit(lab.queue, [result(await lab.takeOne(), { action: "keep" })], IDLE_MS, KEPT);
    await lapse();
    expect(await back(2)).toEqual({ said: "unknown" });
  });

  it("is doubled, and the two go on by themselves", async () => {
    expect(await fork(lab.redis, address(), OTHER, terms)).toMatchObject({ said: "forked" });
    expect(await fork(lab.redis, address(), OTHER, terms)).toMatchObject({ said: "forked" });
    expect(await lab.redis.pttl((await lab.statesOf(OTHER))[0] ?? "")).toBeGreaterThan(DAY_MS);
    expect(await step(put("theirs"), false, OTHER)).toMatchObject({ number: 5 });
    expect(await lab.currentState()).toBe("s4");
    expect(await lab.currentState(OTHER)).toBe("theirs");
    expect(await lab.statesOf()).toHaveLength(KEPT);
    expect(await fork(lab.redis, address(), OTHER, terms)).toEqual({ said: "exists" });
    await lapse(OTHER);
    expect(await fork(lab.redis, address(), OTHER, terms)).toMatchObject({ said: "forked" });
    expect(await lab.statesOf(OTHER)).toHaveLength(1);
    expect(await lab.currentState(OTHER)).toBe("s4");
  });

  it("is doubled at an earlier step, also while it is busy", async () => {
    await lab.admitStep({ request: "busy" });
    expect(await fork(lab.redis, address(), OTHER, terms, 2)).toMatchObject({ said: "forked", view: { step: 2 } });
    expect(await lab.currentState(OTHER)).toBe("s2");
    expect(await fork(lab.redis, address(), "default:u9", terms)).toMatchObject({ said: "forked", view: { step: 4 } });
    expect(await lab.currentState("default:u9")).toBe("s4");
    expect(await fork(lab.redis, address(), "default:u10", terms, 1)).toMatchObject({ said: "gone" });
    expect(await fork(lab.redis, address(), "default:u10", terms, 5)).toMatchObject({ said: "future" });
  });

  it("is not doubled while it is unknown or too much, nor without a step or its state", async () => {
    expect(await fork(lab.redis, address(OTHER), SEQUENCE, terms)).toEqual({ said: "unknown" });
    expect(await fork(lab.redis, address(), OTHER, { ...terms, liveSequences: 1 })).toEqual({
      said: "too-many-sequences",
    });
    await lab.redis.del(await lab.statesOf());
    expect(await fork(lab.redis, address(), OTHER, terms)).toMatchObject({ said: "gone" });
    await lab.admitStep({ request: "busy", start: true });
    expect(await fork(lab.redis, address(), OTHER, terms)).toMatchObject({ said: "busy" });
  });

  /** Makes one more step whose state is a whole checkpoint. */
  async function exported(text: string): Promise<ExportedSequence> {
    const tensor = { name: "s", datatype: "UINT8" as const, shape: [text.length], data: Buffer.from(text) };
    const { version, frame } = encodeCheckpoint(nameRun("1-0"), [tensor]);
    await step({ action: "put", version, checkpoint: frame });
    const found = await exportSequence(lab.redis, address());
    if (found.said !== "exported") throw new Error(found.said);
    return found.sequence;
  }

  it("is exported, and imported into any bucket under a version of its own", async () => {
    const sequence = await exported("whole");
    expect(sequence).toMatchObject({ step: 5, pin: { version: lab.lane.version, digest: lab.lane.digest } });
    const stamped = stampForImport(sequence);
    expect(stamped.checkpoint?.version).not.toBe(sequence.checkpoint?.version);
    expect(await importSequence(lab.redis, address(OTHER), stamped, terms)).toMatchObject({ said: "imported" });
    expect(await importSequence(lab.redis, address(OTHER), stamped, terms)).toMatchObject({ said: "imported" });
    const next = await (async () => {
      await lab.admitStep({ request: "next", sequence: OTHER });
      return lab.takeOne();
    })();
    expect(next).toMatchObject({ number: 6, from: stamped.checkpoint?.version });
    const [key = ""] = await lab.statesOf(OTHER);
    const { tensors } = decodeCheckpoint((await lab.redis.getBuffer(key)) ?? Buffer.alloc(0), next.from);
    expect(tensors[0]?.data.toString()).toBe("whole");
    const elsewhere = { ...address(OTHER), bucket: 3 };
    expect(await importSequence(lab.redis, elsewhere, stampForImport(sequence), terms)).toMatchObject({
      said: "imported",
    });
  });

  it("is not imported over a live one, and leaves nothing behind then", async () => {
    const sequence = await exported("whole");
    await step(put("theirs"), true, OTHER);
    expect(await importSequence(lab.redis, address(OTHER), stampForImport(sequence), terms)).toEqual({
      said: "exists",
    });
    expect(await lab.statesOf(OTHER)).toHaveLength(1);
    expect(await lab.currentState(OTHER)).toBe("theirs");
    const full = { ...terms, liveSequences: 2 };
    expect(await importSequence(lab.redis, address("default:u9"), stampForImport(sequence), full)).toEqual({
      said: "too-many-sequences",
    });
    expect(await lab.statesOf("default:u9")).toEqual([]);
    expect(() => stampForImport({ ...sequence, checkpoint: { version: "x", frame: Buffer.from("spoiled") } })).toThrow(
      expect.objectContaining({ code: "state_corrupt" }),
    );
  });

  it("is not exported without a step, nor without its state", async () => {
    expect(await exportSequence(lab.redis, address(OTHER))).toEqual({ said: "unknown" });
    await lab.redis.del(await lab.statesOf());
    expect(await exportSequence(lab.redis, address())).toMatchObject({ said: "gone" });
    await lab.admitStep({ request: "busy", start: true });
    expect(await exportSequence(lab.redis, address())).toMatchObject({ said: "busy" });
  });

  it("counts on from a step of many digits", async () => {
    const pin = { version: lab.lane.version, digest: lab.lane.digest };
    const checkpoint = encodeCheckpoint(nameRun("import"), []);
    const step = 123_456_789_012_345;
    await importSequence(lab.redis, address(OTHER), { step, pin, checkpoint }, terms);
    expect(await lab.admitStep({ request: "next", sequence: OTHER })).toEqual({ said: "admitted" });
    expect((await lab.takeOne()).number).toBe(step + 1);
  });
});
