import { describe, expect, it } from "vitest";
import { pinOf } from "#shared/queue/address.js";
import { FAILED, type Delivery } from "#shared/queue/entry.js";
import { laneKeys, outcomeKey, waitKey } from "#shared/queue/keys.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { IDLE_MS, LIMITS, SEQUENCE, admit, applicant, put, result, useLab } from "../support/queue/lab.js";
import { changeFacts } from "../support/queue/facts.js";

const DAY_MS = 86_400_000;

describe("admit", () => {
  const lab = useLab();

  it("queues a step that begins a sequence", async () => {
    expect(await lab.admitStep({ request: "r1", start: true })).toEqual({ said: "admitted" });
    expect(await lab.takeOne()).toMatchObject({
      request: "r1",
      step: 1,
      start: true,
      end: false,
      from: "",
      sequence: SEQUENCE,
    });
  });

  it("queues a stateless request", async () => {
    expect(await lab.admitRequest("r1")).toEqual({ said: "admitted" });
    expect(await lab.takeOne()).toMatchObject({ request: "r1", step: 0, sequence: undefined, gateway: "gw" });
  });

  it("keeps later steps of a busy sequence waiting, in order", async () => {
    for (const request of ["r1", "r2", "r3"]) await lab.admitStep({ request, start: request === "r1" });
    expect(await lab.take()).toHaveLength(1);
    expect(await lab.redis.llen(waitKey(lab.lane, SEQUENCE))).toBe(2);
  });

  it("refuses a step of an unknown sequence without START", async () => {
    expect(await lab.admitStep({ request: "r1" })).toEqual({ said: "start-required", why: "never_started" });
    expect(await lab.redis.keys(`*${lab.lane.model}*`)).toEqual([laneKeys(lab.lane).ready]);
  });

  it("frees the id as soon as END is admitted, though earlier steps still run", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.admitStep({ request: "r2", end: true });
    expect(await lab.admitStep({ request: "r3" })).toEqual({ said: "start-required", why: "ended" });
    expect(await lab.admitStep({ request: "r4", start: true })).toEqual({ said: "admitted" });
  });

  it("accepts START on a live sequence", async () => {
    await lab.admitStep({ request: "r1", start: true });
    expect(await lab.admitStep({ request: "r2", start: true })).toEqual({ said: "admitted" });
  });

  it("knows a request that it admitted before, without an outcome and with one", async () => {
    await lab.admitStep({ request: "r1", start: true, digest: "d" });
    expect(await lab.admitStep({ request: "r1", start: true, digest: "d" })).toEqual({
      said: "known",
      pin: pinOf(lab.lane),
      outcome: undefined,
    });
    await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
    expect(await lab.admitStep({ request: "r1", start: true, digest: "d" })).toEqual({
      said: "known",
      pin: pinOf(lab.lane),
      outcome: { kind: "result", body: Buffer.from("answer") },
    });
    expect(await lab.take()).toEqual([]);
  });

  it("refuses a known request with another digest", async () => {
    await lab.admitRequest("r1", "d1");
    expect(await lab.admitRequest("r1", "d2")).toEqual({ said: "mismatch" });
  });

  it("refuses past the queue limit and writes nothing", async () => {
    await lab.admitRequest("r1", "", 1);
    expect(await lab.admitRequest("r2", "", 1)).toEqual({ said: "queue-full", limit: "model-requests" });
    expect(await lab.redis.exists(outcomeKey(lab.addressOf("r2")))).toBe(0);
  });

  it("refuses past the waiting limit of a sequence", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.admitStep({ request: "r2", backlog: 1 });
    expect(await lab.admitStep({ request: "r3", backlog: 1 })).toEqual({ said: "backlog-full" });
  });

  it("refuses a new sequence past the limit of live ones, and no step of a live one", async () => {
    await lab.admitStep({ request: "r1", start: true });
    expect(await lab.admitStep({ request: "r2", start: true, sequence: "default:u8", sequences: 1 })).toEqual({
      said: "too-many-sequences",
    });
    expect(await lab.admitStep({ request: "r3", sequences: 1 })).toEqual({ said: "admitted" });
  });

  it("keeps the state of an idle sequence for a day past the deadline of the step that is to continue it", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
    const [state = ""] = await lab.statesOf();
    const left = await lab.redis.pttl(state);
    expect(left).toBeGreaterThan(2 * DAY_MS);
    await lab.admitStep({ request: "r2" });
    expect(await lab.redis.pttl(state)).toBeLessThanOrEqual(left);
    // Its TTL has nearly run out, as after days of steps that had no effect.
    await lab.redis.pexpire(state, 60_000);
    await changeFacts(lab.redis, lab.lane, SEQUENCE, { keptUntil: Date.now() + 60_000 });
    await lab.admitStep({ request: "r3", deadlineMs: 7 * DAY_MS });
    expect(await lab.redis.pttl(state)).toBeGreaterThan(8 * DAY_MS);
  });

  it("wants START of a sequence that has idled out, whether or not it was removed yet", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await commit(lab.queue, [result(await lab.takeOne(), put("old"))], IDLE_MS);
    await changeFacts(lab.redis, lab.lane, SEQUENCE, { lapses: Date.now() - 1 });
    expect(await lab.admitStep({ request: "r2" })).toEqual({ said: "start-required", why: "expired" });
    expect(await lab.currentState()).toBe("old");
    expect(await lab.admitStep({ request: "r3", start: true })).toEqual({ said: "admitted" });
    expect(await lab.statesOf()).toEqual([]);
    expect(await lab.takeOne()).toMatchObject({ request: "r3", step: 1, from: "" });
  });

  it("tells a step that should have another number which one is next, and writes nothing", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.admitStep({ request: "r2", number: 2 });
    expect(await lab.admitStep({ request: "r3", number: 2 })).toEqual({ said: "behind", number: 3 });
    expect(await lab.admitStep({ request: "r3", number: 9 })).toEqual({ said: "ahead", number: 3 });
    expect(await lab.redis.exists(outcomeKey(lab.addressOf("r3")))).toBe(0);
    expect(await lab.admitStep({ request: "r3", number: 3, digest: "d" })).toEqual({ said: "admitted" });
    // A retry under its key finds its request, although another step is next by then.
    expect(await lab.admitStep({ request: "r3", number: 3, digest: "d" })).toMatchObject({ said: "known" });
    expect(await lab.admitStep({ request: "r4", start: true })).toEqual({ said: "admitted" });
    expect(await lab.admitStep({ request: "r5", number: 2 })).toEqual({ said: "admitted" });
  });

  describe("of a step that may begin its sequence", () => {
    const step = (request: string, more: object = {}) => lab.admitStep({ request, mayBegin: true, ...more });
    const settle = async (): Promise<void> => {
      await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
    };
    const admitted = { said: "admitted" };

    it("queues the first as START, and goes on with the sequence that is there", async () => {
      for (const request of ["r1", "r2"]) expect(await step(request)).toEqual(admitted);
      expect(await lab.takeOne()).toMatchObject({ request: "r1", step: 1, number: 1, start: true, end: false });
      expect(await lab.redis.llen(waitKey(lab.lane, SEQUENCE))).toBe(1);
    });

    it("queues what begins and ends with both flags, and the next one as START again", async () => {
      await step("r1", { end: true });
      await step("r2");
      await step("r3", { end: true });
      const flags: object[] = [];
      for (let i = 0; i < 3; i++) {
        const delivery = await lab.takeOne();
        flags.push([delivery.start, delivery.end, delivery.number]);
        await commit(lab.queue, [result(delivery, put("s"))], IDLE_MS);
      }
      expect(flags).toEqual([
        [true, true, 1],
        [true, false, 1],
        [false, true, 2],
      ]);
    });

    it("begins a sequence anew that has idled out, from its initial state", async () => {
      await step("r1");
      await settle();
      expect(await step("r2")).toEqual(admitted);
      const second = await lab.takeOne();
      expect(second).toMatchObject({ request: "r2", number: 2, start: false });
      await commit(lab.queue, [result(second, put("s2"))], IDLE_MS);
      await changeFacts(lab.redis, lab.lane, SEQUENCE, { lapses: Date.now() - 1 });
      expect(await step("r3")).toEqual(admitted);
      expect(await lab.takeOne()).toMatchObject({ request: "r3", step: 1, number: 1, start: true, from: "" });
    });

    it("obeys an explicit START on a live sequence", async () => {
      await step("r1");
      await settle();
      await step("r2", { start: true });
      expect(await lab.takeOne()).toMatchObject({ request: "r2", step: 2, number: 1, start: true });
    });

    it("begins a sequence anew that has failed, behind the steps that are still to be refused", async () => {
      await step("r1");
      await step("r2");
      const fail = (delivery: Delivery) => commit(lab.queue, [result(delivery, { action: "fail" })], IDLE_MS);
      await fail(await lab.takeOne());
      expect(await step("r3")).toEqual(admitted);
      const refused = await lab.takeOne();
      expect(refused).toMatchObject({ request: "r2", start: false, from: FAILED });
      await fail(refused);
      expect(await lab.takeOne()).toMatchObject({ request: "r3", number: 1, start: true });
    });

    it("says that a number past the first is ahead of a sequence that is not there", async () => {
      expect(await step("r1", { number: 3 })).toEqual({ said: "ahead", number: 1 });
      expect(await step("r1", { number: 1 })).toEqual(admitted);
      expect(await step("r2", { number: 2 })).toEqual(admitted);
    });

    it("finds a request again under its key, and begins nothing", async () => {
      await step("r1", { digest: "d", end: true });
      expect(await step("r1", { digest: "d", end: true })).toMatchObject({ said: "known" });
      expect(await lab.take()).toHaveLength(1);
    });

    it("counts it as a new sequence, and tells one of another version where it is", async () => {
      await step("r1");
      expect(await step("r2", { sequence: "default:u8", sequences: 1 })).toEqual({ said: "too-many-sequences" });
      const lane = { ...lab.lane, version: "2" };
      const sequence = { name: SEQUENCE, start: false, end: false, mayBegin: true };
      const elsewhere = { ...applicant(lane, "r3", "r3"), sequence };
      const [answer] = await admit(lab.redis, { gateway: "gw", limits: LIMITS }, [elsewhere]);
      expect(answer).toEqual({ said: "pinned", pin: pinOf(lab.lane) });
    });
  });

  it("reads the deadline on Redis's clock", async () => {
    await lab.admitStep({ request: "r1", start: true, deadlineMs: 5_000 });
    const [seconds, micros] = await lab.redis.time();
    const { deadlineAt } = await lab.takeOne();
    const left = deadlineAt - (Number(seconds) * 1_000 + Number(micros) / 1_000);
    expect(left).toBeLessThanOrEqual(5_000);
    expect(left).toBeGreaterThan(0);
  });

  it("keeps the record of what nobody ends for a day past its deadline: a stream may last as long", async () => {
    await lab.admitRequest("r1");
    const day = 86_400_000;
    expect(await lab.redis.pttl(outcomeKey(lab.addressOf("r1")))).toBeGreaterThan(day);
  });

  it("answers each of a call's requests for itself", async () => {
    await lab.admitStep({ request: "old", start: true, digest: "d" });
    const step = (request: string, name: string, start: boolean) => {
      return { ...applicant(lab.lane, request, request), sequence: { name, start, end: false } };
    };
    const answers = await admit(lab.redis, { gateway: "gw", limits: LIMITS }, [
      step("r1", "default:u1", true),
      step("r2", "default:u2", false),
      { ...applicant(lab.lane, "old", "old"), digest: "d" },
      { ...applicant(lab.lane, "old", "old"), digest: "other" },
      step("r3", "default:u1", false),
      applicant(lab.lane, "r4", "r4"),
    ]);
    expect(answers.map(({ said }) => said)).toEqual([
      "admitted",
      "start-required",
      "known",
      "mismatch",
      "admitted",
      "admitted",
    ]);
    expect((await lab.take()).map(({ request }) => request)).toEqual(["old", "r1", "r4"]);
    expect(await lab.redis.llen(waitKey(lab.lane, "default:u1"))).toBe(1);
  });

  it("counts a call's own requests against the limits", async () => {
    const step = (id: number, request: string) => {
      const sequence = { name: `default:u${id}`, start: true, end: false };
      return { ...applicant(lab.lane, request, "x"), sequence };
    };
    const said = async (limits: typeof LIMITS, ...requests: readonly [string, string]) => {
      const steps = [step(1, requests[0]), step(2, requests[1])];
      return (await admit(lab.redis, { gateway: "gw", limits }, steps)).map((answer) => answer.said);
    };
    expect(await said({ ...LIMITS, queue: 1 }, "r1", "r2")).toEqual(["admitted", "queue-full"]);
    await lab.take();
    expect(await said({ ...LIMITS, liveSequences: 1 }, "r3", "r4")).toEqual(["admitted", "too-many-sequences"]);
  });
});
