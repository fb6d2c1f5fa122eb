import { describe, expect, it } from "vitest";
import { tokenRecord } from "#shared/contract/generation.js";
import { logKey, outcomeKey } from "#shared/queue/keys.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { IDLE_MS, finalRecord, put, record, result, streaming, useLab, type Lab } from "../support/queue/lab.js";

const cancelled = { code: "cancelled", message: "the request was cancelled", ttlMs: 100_000, stream: true } as const;

function cancel(lab: Lab, ending: Parameters<typeof cancelRequest>[2] = cancelled) {
  return cancelRequest(lab.redis, lab.addressOf("r1"), ending);
}

describe("cancelRequest", () => {
  const lab = useLab();

  it("gives a stream its final record and the request its outcome, for the same time", async () => {
    await lab.admitStream("r1");
    const { entry } = await lab.takeOne();
    await lab.append(entry, "r1", [record(0), record(1)]);
    const given = await cancel(lab);
    const log = await lab.logOf("r1");
    expect(given).toMatchObject({
      said: "given",
      version: expect.stringMatching(/^\d+$/),
      last: { record: Buffer.from(log[2] ?? ""), labels: [] },
    });
    expect(tokenRecord.parse(JSON.parse(log[2] ?? ""))).toEqual({
      index: 2,
      choices: [],
      final: true,
      reason: "cancelled",
      error: { code: "cancelled", message: "the request was cancelled" },
    });
    const fields = await lab.outcomeFields("r1");
    expect(fields).toMatchObject({ kind: "error", sealed: "1" });
    expect(Number(fields["ended"])).toBeGreaterThanOrEqual(Number(fields["at"]));
    for (const key of [outcomeKey(lab.addressOf("r1")), logKey(lab.addressOf("r1"))]) {
      const left = await lab.redis.pttl(key);
      expect(left).toBeGreaterThan(60_000);
      expect(left).toBeLessThanOrEqual(100_000);
    }
  });

  it("never keeps the outcome for less than admission said: under a key, a retry must find it", async () => {
    await lab.admitStream("r1");
    await cancel(lab, { ...cancelled, ttlMs: 1_000 });
    for (const key of [outcomeKey(lab.addressOf("r1")), logKey(lab.addressOf("r1"))]) {
      const left = await lab.redis.pttl(key);
      expect(left).toBeGreaterThan(1_000);
      expect(left).toBeLessThanOrEqual(60_000);
    }
  });

  it("begins the log of a stream that had not begun, in any words", async () => {
    await lab.admitStream("r1");
    const message = 'Request "timeout"\nexpired \\ {käse}';
    expect(await cancel(lab, { ...cancelled, code: "expired", message })).toMatchObject({ said: "given" });
    const [final = ""] = await lab.logOf("r1");
    expect(tokenRecord.parse(JSON.parse(final))).toMatchObject({
      index: 0,
      reason: "expired",
      error: { code: "expired", message },
    });
  });

  it("calls what is neither cancelled nor expired an error", async () => {
    await lab.admitStream("r1");
    await cancel(lab, { ...cancelled, code: "request_lost" });
    expect(tokenRecord.parse(JSON.parse((await lab.logOf("r1"))[0] ?? ""))).toMatchObject({ reason: "error" });
  });

  it("cancels once: the second call knows the outcome of the first", async () => {
    await lab.admitStream("r1");
    await cancel(lab);
    const body = Buffer.from('{"code":"cancelled","message":"the request was cancelled"}');
    expect(await cancel(lab, { ...cancelled, code: "expired" })).toEqual({
      said: "known",
      outcome: { kind: "error", body },
    });
    expect(await lab.logOf("r1")).toHaveLength(1);
  });

  it("leaves a stream alone that has its final record", async () => {
    await lab.admitStream("r1");
    const { entry } = await lab.takeOne();
    await lab.append(entry, "r1", [finalRecord(0)], true);
    expect(await cancel(lab)).toEqual({ said: "sealed" });
    expect(await lab.logOf("r1")).toEqual([finalRecord(0)]);
    expect(await lab.outcomeFields("r1")).not.toHaveProperty("kind");
  });

  it("leaves a stream alone that has a token, if only one without is to be ended", async () => {
    const late = { ...cancelled, code: "expired", message: "too late", unlessBegun: true } as const;
    await lab.admitStream("r1");
    const { entry } = await lab.takeOne();
    expect(await lab.append(entry, "r1", [record(0)])).toEqual(["appended"]);
    const before = await lab.outcomeFields("r1");
    expect(await cancel(lab, late)).toEqual({ said: "begun" });
    expect(await lab.logOf("r1")).toEqual([record(0)]);
    expect(await lab.outcomeFields("r1")).toEqual(before);
    expect(await cancel(lab, { ...late, unlessBegun: false })).toMatchObject({ said: "given" });
    expect(await cancel(lab, late)).toMatchObject({ said: "known" });
  });

  it("ends one without a token, whose worker then appends none", async () => {
    await lab.admitStream("r1");
    const { entry } = await lab.takeOne();
    const late = { ...cancelled, code: "expired", message: "too late", unlessBegun: true } as const;
    expect(await cancel(lab, late)).toMatchObject({ said: "given" });
    expect(await lab.append(entry, "r1", [record(0)])).toEqual(["ended"]);
    expect(await lab.logOf("r1")).toHaveLength(1);
  });

  it("says when there is no such request, and makes none", async () => {
    expect(await cancel(lab)).toEqual({ said: "unknown" });
    expect(await lab.redis.exists(outcomeKey(lab.addressOf("r1")), logKey(lab.addressOf("r1")))).toBe(0);
  });

  it("makes no log for what is no stream", async () => {
    await lab.admitRequest("r1");
    expect(await cancel(lab, { ...cancelled, stream: false })).toMatchObject({ said: "given", last: undefined });
    expect(await lab.redis.exists(logKey(lab.addressOf("r1")))).toBe(0);
    expect(await lab.outcomeFields("r1")).not.toHaveProperty("sealed");
    expect(await lab.outcomeFields("r1")).toMatchObject({ kind: "error" });
  });

  it("is what the worker that holds the request learns at its next append, and its commit takes no effect", async () => {
    await lab.admitStream("r1");
    const delivery = await lab.takeOne();
    await cancel(lab);
    await lab.redis.pexpire(logKey(lab.addressOf("r1")), 1_000);
    expect(await lab.append(delivery.entry, "r1", [record(0)])).toEqual(["ended"]);
    expect(await commit(streaming(lab.queue), [result(delivery, { action: "keep" })], undefined)).toEqual([
      "superseded",
    ]);
    expect(await lab.redis.pttl(logKey(lab.addressOf("r1")))).toBeLessThanOrEqual(1_000);
  });

  it("leaves a conversation where it was, and a waiting turn to be passed over", async () => {
    const queue = streaming(lab.queue);
    await lab.admitStep({ request: "r0", start: true });
    const first = await lab.takeOne();
    await lab.admitStep({ request: "r1" });
    await lab.admitStep({ request: "r2" });
    expect(await cancel(lab)).toMatchObject({ said: "given" });
    expect(await commit(queue, [result(first, put("s0"))], IDLE_MS)).toEqual(["committed"]);
    const [waiting] = await lab.take();
    if (waiting === undefined) throw new Error("the cancelled turn should be ready");
    expect(await commit(queue, [result(waiting, put("s1"))], IDLE_MS)).toEqual(["superseded"]);
    expect(await lab.currentState()).toBe("s0");
    expect(await lab.takeOne()).toMatchObject({ request: "r2", from: await lab.currentVersion() });
  });

  it.each(["cancelled", "expired"] as const)(
    "lets a conversation go on whose first turn was %s: that turn has not happened",
    async (code) => {
      const queue = streaming(lab.queue);
      await lab.admitStep({ request: "r1", start: true });
      await lab.admitStep({ request: "r2" });
      const first = await lab.takeOne();
      await cancel(lab, { ...cancelled, code });
      expect(await commit(queue, [result(first, put("s1"))], IDLE_MS)).toEqual(["superseded"]);
      const second = await lab.takeOne();
      expect(second).toMatchObject({ request: "r2", from: "" });
      expect(await lab.statesOf()).toEqual([]);
      expect(await commit(queue, [result(second, put("s2"))], IDLE_MS)).toEqual(["committed"]);
      expect(await lab.admitStep({ request: "r3" })).toEqual({ said: "admitted" });
      expect(await lab.currentState()).toBe("s2");
      expect(await lab.takeOne()).toMatchObject({ request: "r3", from: await lab.currentVersion() });
    },
  );

  it("takes the next turn after the first was cancelled with nothing behind it", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const first = await lab.takeOne();
    await cancel(lab);
    expect(await commit(streaming(lab.queue), [result(first, put("s1"))], IDLE_MS)).toEqual(["superseded"]);
    expect(await lab.admitStep({ request: "r2" })).toEqual({ said: "admitted" });
    expect(await lab.takeOne()).toMatchObject({ request: "r2", from: "" });
  });

  it.each([
    ["ends the sequence of a step whose client has left", false, "start-required"],
    ["leaves a sequence alone that has begun anew behind the step", true, "admitted"],
  ])("%s", async (_, again, said) => {
    await lab.admitStep({ request: "r0", start: true });
    await lab.takeOne();
    await lab.admitStep({ request: "r1", end: again });
    if (again) await lab.admitStep({ request: "r2", start: true });
    expect(await cancel(lab, { ...cancelled, stream: false, endsSequence: true })).toMatchObject({ said: "given" });
    expect(await lab.admitStep({ request: "r3" })).toMatchObject({ said });
  });
});
