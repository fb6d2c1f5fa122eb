import { describe, expect, it } from "vitest";
import { laneKeys, outcomeKey, waitKey } from "#shared/queue/keys.js";
import { beginAlone } from "#shared/queue/work/read/begin-alone.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { mendSequence } from "#shared/queue/work/commit/mend-sequence.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { IDLE_MS, SEQUENCE, put, result, useLab } from "../support/queue/lab.js";
import { changeFacts, deleteFacts } from "../support/queue/facts.js";

const DAY_MS = 86_400_000;

describe("commit of a sequence's steps", () => {
  const lab = useLab();

  it("writes state and outcome, and makes the next waiting step ready from that state", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.admitStep({ request: "r2" });
    const first = await lab.takeOne();
    expect(await commit(lab.queue, [result(first, put("s1"))], IDLE_MS)).toEqual(["committed"]);
    expect(await lab.currentState()).toBe("s1");
    expect(await lab.redis.hget(outcomeKey(lab.addressOf("r1")), "body")).toBe("answer");
    expect(await lab.takeOne()).toMatchObject({
      request: "r2",
      step: 2,
      from: await lab.currentVersion(),
      frame: Buffer.from("r2"),
    });
  });

  it("leaves nothing behind after END", async () => {
    await lab.admitStep({ request: "r1", start: true, end: true });
    await commit(lab.queue, [result(await lab.takeOne(), put("s1"))], IDLE_MS);
    const keys = (await lab.redis.keys(`*${lab.lane.model}:*`)).filter((key) => !key.startsWith("past:"));
    expect(keys.sort()).toEqual([outcomeKey(lab.addressOf("r1")), laneKeys(lab.lane).ready].sort());
    expect(await lab.redis.xlen(laneKeys(lab.lane).ready)).toBe(0);
  });

  it("refuses a worker whose entry was taken over, and changes nothing", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const stolen = await lab.takeOne();
    await takeFrom(lab.other, lab.queue.consumer, 10);
    expect(await commit(lab.queue, [result(stolen, put("zombie"))], IDLE_MS)).toEqual(["lost"]);
    expect(await lab.statesOf()).toEqual([]);
    expect(await commit(lab.other, [result(stolen, put("good"))], IDLE_MS)).toEqual(["committed"]);
  });

  it("tells a worker whose reply was lost that the outcome stands", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const delivery = await lab.takeOne();
    await commit(lab.queue, [result(delivery, put("s1"))], IDLE_MS);
    expect(await commit(lab.queue, [result(delivery, put("s2"))], IDLE_MS)).toEqual(["already"]);
    expect(await lab.currentState()).toBe("s1");
  });

  it("lets a step that was ended meanwhile take no effect, and the sequence go on from its old state", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const first = await lab.takeOne();
    await commit(lab.queue, [result(first, put("s1"))], IDLE_MS);
    await lab.admitStep({ request: "r2" });
    await lab.admitStep({ request: "r3" });
    const second = await lab.takeOne();
    await lab.giveError("r2", "{}");
    expect(await commit(lab.queue, [result(second, put("s2"))], IDLE_MS)).toEqual(["superseded"]);
    expect(await lab.currentState()).toBe("s1");
    expect(await lab.takeOne()).toMatchObject({ request: "r3", from: await lab.currentVersion() });
  });

  it("still lets it take no effect when its record is gone: the client has its outcome, and the gateway let go of it", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const first = await lab.takeOne();
    await commit(lab.queue, [result(first, put("s1"))], IDLE_MS);
    await lab.admitStep({ request: "r2" });
    const second = await lab.takeOne();
    await lab.giveError("r2", "{}");
    await lab.redis.unlink(outcomeKey(lab.addressOf("r2")));
    expect(await commit(lab.queue, [result(second, put("s2"))], IDLE_MS)).toEqual(["superseded"]);
    expect(await lab.currentState()).toBe("s1");
    expect(await lab.redis.exists(outcomeKey(lab.addressOf("r2")))).toBe(0);
  });

  it("acknowledges a step that its sequence knows nothing of: it would come back for ever", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const orphan = await lab.takeOne();
    await deleteFacts(lab.redis, lab.lane, SEQUENCE);
    expect(await commit(lab.queue, [result(orphan, put("s1"))], IDLE_MS)).toEqual(["lost"]);
    expect(await lab.redis.xlen(laneKeys(lab.lane).ready)).toBe(0);
    expect(await lab.statesOf()).toEqual([]);
  });

  it("fails the sequence when its START was ended meanwhile: later steps are marked, and START is required", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.admitStep({ request: "r2" });
    const first = await lab.takeOne();
    await lab.giveError("r1", "{}");
    expect(await commit(lab.queue, [result(first, put("s1"))], IDLE_MS)).toEqual(["superseded"]);
    expect(await lab.takeOne()).toMatchObject({ request: "r2", from: "!" });
    expect(await lab.admitStep({ request: "r3" })).toEqual({ said: "start-required", why: "cancelled" });
  });

  it.each([
    { action: "keep" as const, state: "s1", from: "kept" },
    { action: "drop" as const, state: null, from: "" },
    { action: "fail" as const, state: null, from: "!" },
  ])("does '$action' with the state", async ({ action, state, from }) => {
    await lab.admitStep({ request: "r1", start: true });
    const first = await lab.takeOne();
    await commit(lab.queue, [result(first, put("s1"))], IDLE_MS);
    await lab.admitStep({ request: "r2" });
    await lab.admitStep({ request: "r3" });
    await commit(lab.queue, [result(await lab.takeOne(), { action })], IDLE_MS);
    expect(await lab.currentState()).toBe(state);
    expect((await lab.takeOne()).from).toBe(from === "kept" ? await lab.currentVersion() : from);
    expect(await lab.statesOf()).toHaveLength(state === null ? 0 : 1);
  });

  it("lets a START that was queued behind a failed step begin anew", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.admitStep({ request: "r2", start: true });
    await commit(lab.queue, [result(await lab.takeOne(), { action: "fail" })], IDLE_MS);
    expect(await lab.admitStep({ request: "r3" })).toEqual({ said: "admitted" });
    const second = await lab.takeOne();
    expect(second).toMatchObject({ request: "r2", start: true, from: "!" });
    expect(await commit(lab.queue, [result(second, put("s2"))], IDLE_MS)).toEqual(["committed"]);
    expect(await lab.takeOne()).toMatchObject({ request: "r3", from: await lab.currentVersion() });
  });

  it("sets a step aside with its reason and frame", async () => {
    await lab.admitStep({ request: "r1", start: true, body: "deadly" });
    const deadly = await lab.takeOne();
    for (const run of ["a", "b"]) await beginAlone(lab.queue, deadly, 2, run);
    await commit(lab.queue, [result(deadly, { action: "fail" }, "poison_request")], IDLE_MS);
    const [[, fields] = []] = await lab.redis.xrange(laneKeys(lab.lane).dead, "-", "+");
    expect(fields).toEqual([
      "request",
      "default:r1",
      "job",
      "",
      "sequence",
      SEQUENCE,
      "step",
      "1",
      "reason",
      "poison_request",
      "runs",
      "2",
      "frame",
      "deadly",
    ]);
  });

  it("removes the version before the new one, and that of a run that changed nothing", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const first = await lab.takeOne();
    await commit(lab.queue, [result(first, put("s1"))], IDLE_MS);
    const [one] = await lab.statesOf();
    await lab.admitStep({ request: "r2" });
    const second = await lab.takeOne();
    await takeFrom(lab.other, lab.queue.consumer, 10);
    expect(await commit(lab.queue, [result(second, put("zombie"))], IDLE_MS)).toEqual(["lost"]);
    expect(await lab.statesOf()).toEqual([one]);
    expect(await commit(lab.other, [result(second, put("s2"))], IDLE_MS)).toEqual(["committed"]);
    expect(await commit(lab.queue, [result(second, put("zombie"))], IDLE_MS)).toEqual(["already"]);
    expect(await lab.statesOf()).toHaveLength(1);
    expect(await lab.currentState()).toBe("s2");
  });

  it("leaves the version that the sequence goes on from, when the same call comes once more", async () => {
    await lab.admitStep({ request: "r1", start: true });
    const settled = result(await lab.takeOne(), put("s1"));
    expect(await commit(lab.queue, [settled], IDLE_MS)).toEqual(["committed"]);
    expect(await commit(lab.queue, [settled], IDLE_MS)).toEqual(["already"]);
    expect(await lab.currentState()).toBe("s1");
    // The repeat comes after the sequence's next step: from a stalled link, for instance.
    await lab.admitStep({ request: "r2" });
    await commit(lab.queue, [result(await lab.takeOne(), put("s2"))], IDLE_MS);
    expect(await commit(lab.queue, [settled], IDLE_MS)).toEqual(["already"]);
    expect(await lab.currentState()).toBe("s2");
    expect(await lab.statesOf()).toHaveLength(1);
  });

  it("commits when Redis has forgotten its scripts", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.redis.script("FLUSH");
    expect(await commit(lab.queue, [result(await lab.takeOne(), put("s1"))], IDLE_MS)).toEqual(["committed"]);
    expect(await lab.currentState()).toBe("s1");
  });

  it("renews a state that waits for long: its TTL only collects garbage", async () => {
    await lab.admitStep({ request: "r1", start: true });
    await lab.admitStep({ request: "r2", deadlineMs: 30 * DAY_MS });
    await commit(lab.queue, [result(await lab.takeOne(), put("s1"))], IDLE_MS);
    const [state = ""] = await lab.statesOf();
    expect(await lab.redis.pttl(state)).toBeGreaterThan(31 * DAY_MS);
    // Its step may wait in the queue even longer, while workers live.
    await lab.redis.pexpire(state, 60_000);
    await changeFacts(lab.redis, lab.lane, SEQUENCE, { keptUntil: Date.now() + 60_000 });
    await mendSequence(lab.queue, SEQUENCE);
    expect(await lab.redis.pttl(state)).toBeGreaterThan(DAY_MS);
    // A model that keeps its sequences for ever.
    const never = 100 * 365 * DAY_MS;
    await commit(lab.queue, [result(await lab.takeOne(), { action: "keep" })], never);
    expect(await lab.redis.pttl(state)).toBeGreaterThan(never);
    await lab.admitStep({ request: "r3" });
    await commit(lab.queue, [result(await lab.takeOne(), put("s3"))], never);
    expect(await lab.redis.pttl((await lab.statesOf())[0] ?? "")).toBeGreaterThan(never);
  });

  it("settles each step of a batch for itself", async () => {
    for (const id of ["u1", "u2", "u3"])
      await lab.admitStep({ request: `r-${id}`, start: true, sequence: `default:${id}` });
    const [one, two, three] = await lab.take();
    if (!one || !two || !three) throw new Error("three steps should be ready");
    await commit(lab.queue, [result(two, put("s"))], IDLE_MS);
    const fates = await commit(
      lab.queue,
      [one, two, three].map((delivery) => result(delivery, put("s"))),
      IDLE_MS,
    );
    expect(fates).toEqual(["committed", "already", "committed"]);
  });
});

describe("commit of stateless requests", () => {
  const lab = useLab();

  it("writes the outcome once and acknowledges", async () => {
    await lab.admitRequest("r1");
    const delivery = await lab.takeOne();
    expect(await commit(lab.queue, [result(delivery, { action: "drop" })], undefined)).toEqual(["committed"]);
    expect(await commit(lab.queue, [result(delivery, { action: "drop" })], undefined)).toEqual(["already"]);
    expect(await lab.redis.xlen(laneKeys(lab.lane).ready)).toBe(0);
    expect(await lab.redis.pttl(outcomeKey(lab.addressOf("r1")))).toBeGreaterThan(0);
  });

  it("refuses a zombie", async () => {
    await lab.admitRequest("r1");
    const delivery = await lab.takeOne();
    await takeFrom(lab.other, lab.queue.consumer, 10);
    expect(await commit(lab.queue, [result(delivery, { action: "drop" })], undefined)).toEqual(["lost"]);
  });

  it("keeps an outcome that was given from outside", async () => {
    await lab.admitRequest("r1");
    const delivery = await lab.takeOne();
    await lab.giveError("r1", "{}");
    expect(await commit(lab.queue, [result(delivery, { action: "drop" })], undefined)).toEqual(["superseded"]);
    expect(await lab.redis.hget(outcomeKey(lab.addressOf("r1")), "kind")).toBe("error");
  });

  it("writes no outcome for a request whose record is gone", async () => {
    await lab.admitRequest("r1");
    const delivery = await lab.takeOne();
    await lab.redis.unlink(outcomeKey(lab.addressOf("r1")));
    expect(await commit(lab.queue, [result(delivery, { action: "drop" })], undefined)).toEqual(["superseded"]);
    expect(await lab.redis.exists(outcomeKey(lab.addressOf("r1")))).toBe(0);
  });

  it("sets requests aside whose entries somebody has deleted meanwhile, and ends the others", async () => {
    for (const request of ["r1", "r2", "r3"]) await lab.admitRequest(request);
    await lab.admitStep({ request: "s1", start: true });
    const held = await lab.take();
    const { ready, dead } = laneKeys(lab.lane);
    await lab.redis.xdel(ready, ...held.slice(1).map(({ entry }) => entry));
    const settled = held.map((one) => result(one, { action: "drop" }, "poison_request"));
    expect(await commit(lab.queue, settled, IDLE_MS)).toEqual(held.map(() => "committed"));
    const frames = (await lab.redis.xrange(dead, "-", "+")).map(([, fields]) => fields.at(-1));
    expect(frames).toHaveLength(4);
    expect(frames.filter((frame) => frame !== "")).toEqual(["r1"]);
    expect((await lab.redis.xpending(ready, "workers"))[0]).toBe(0);
  });

  it("sets a request aside", async () => {
    await lab.admitRequest("r1");
    await commit(lab.queue, [result(await lab.takeOne(), { action: "drop" }, "poison_request")], undefined);
    expect(await lab.redis.xlen(laneKeys(lab.lane).dead)).toBe(1);
  });

  it("commits the others where somebody has broken what belongs to one, and says so", async () => {
    const steps = (sequence: string) => [
      { request: `${sequence.slice(8)}-1`, start: true, sequence },
      { request: `${sequence.slice(8)}-2`, sequence },
    ];
    for (const step of [...steps("default:ua"), ...steps("default:ub")]) await lab.admitStep(step);
    await lab.redis.set(waitKey(lab.lane, "default:ub"), "no list");
    const settled = (await lab.take()).map((delivery) => result(delivery, put("s")));
    await expect(commit(lab.queue, settled, IDLE_MS)).rejects.toThrow(/WRONGTYPE/);
    expect(await lab.currentState("default:ua")).toBe("s");
    expect(await commit(lab.queue, settled, IDLE_MS)).toEqual(["already", "already"]);
    expect((await lab.take()).map(({ request }) => request)).toEqual(["ua-2"]);
  });
});
