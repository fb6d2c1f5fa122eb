import { pino } from "pino";
import { describe, expect, it } from "vitest";
import type { Delivery } from "#shared/contract/entry.js";
import { storeOutcome } from "#shared/contract/outcome.js";
import { laneKeys, logKey, outcomeKey } from "#shared/keys.js";
import { giveOutcome } from "#shared/queue/give-outcome.js";
import { PendingRequests } from "../../gateway/replies/pending.js";
import { reconcileWhileOpen } from "../../worker/intake/reconciler.js";
import { appendTokens } from "../../worker/queue/append-tokens.js";
import { commit, type StateChange } from "../../worker/queue/commit.js";
import type { LaneQueue } from "../../worker/queue/lane.js";
import { isUnwanted, readProgress, sealedOutcome } from "../../worker/queue/progress.js";
import { reclaim } from "../../worker/queue/reclaim.js";
import { takeOver } from "../../worker/queue/take-over.js";
import {
  IDLE_MS,
  admitStep,
  admitStream,
  finalRecord,
  logOf,
  outcomeFields,
  put,
  record,
  result,
  silentBus,
  streaming,
  take,
  takeOne,
  useLab,
  type Lab,
} from "./lab.js";

const log = pino({ level: "silent" });

function seal(queue: LaneQueue, { entry, request }: Delivery, final = finalRecord(1)) {
  return appendTokens(streaming(queue), [{ entry, request, first: 0, records: [record(0), final], final: true }]);
}

/** As a worker does that finds a sealed log: what its final record says is committed. */
async function commitSealed(queue: LaneQueue, delivery: Delivery, state: StateChange) {
  const [progress] = await readProgress(queue.redis, queue.lane, [delivery.request]);
  if (progress?.state !== "sealed") throw new Error(`the log is ${progress?.state}`);
  const settlement = { delivery, outcome: sealedOutcome(progress.records), state, deadReason: undefined };
  return commit(streaming(queue), [settlement], IDLE_MS);
}

async function lapse({ redis, lane }: Lab, request: string) {
  return {
    outcome: await redis.pexpiretime(outcomeKey(lane, request)),
    log: await redis.pexpiretime(logKey(lane, request)),
  };
}

describe("a sealed request", () => {
  const lab = useLab();

  it("takes its outcome from its owner's commit alone, and its log then lives as long", async () => {
    await admitStream(lab, "r1");
    const delivery = await takeOne(lab.queue);
    expect(await seal(lab.queue, delivery)).toEqual(["appended"]);
    const before = await lapse(lab, "r1");
    expect(before.log).toBe(before.outcome);
    const key = outcomeKey(lab.lane, "r1");
    expect(await giveOutcome(lab.redis, [key], ["error", "{}", 1_000])).toEqual({ said: "sealed" });
    expect(await commitSealed(lab.queue, delivery, { action: "keep" })).toEqual(["committed"]);
    const fields = await outcomeFields(lab, "r1");
    expect(fields).toMatchObject({ kind: "result", body: finalRecord(1) });
    expect(Number(fields["ended"])).toBeGreaterThanOrEqual(Number(fields["began"]));
    // Both were kept for an hour beyond the deadline, in case every process dies.
    const after = await lapse(lab, "r1");
    expect(before.outcome - after.outcome).toBeGreaterThan(3_000_000);
    expect(before.log - after.log).toBeGreaterThan(3_000_000);
    expect(await giveOutcome(lab.redis, [key], ["error", "{}", 1_000])).toMatchObject({ said: "known" });
  });

  it("is only committed by the worker that takes it over, and refused to the one that sealed it", async () => {
    await admitStream(lab, "r1");
    const delivery = await takeOne(lab.queue);
    await seal(lab.queue, delivery);
    await reclaim(lab.other, 0, 10, "0-0");
    expect(await takeOver(streaming(lab.other), [delivery], "a")).toEqual(["together"]);
    expect(await commit(streaming(lab.queue), [result(delivery, { action: "keep" })], undefined)).toEqual(["lost"]);
    expect(await commitSealed(lab.other, delivery, { action: "keep" })).toEqual(["committed"]);
    expect(await commit(streaming(lab.queue), [result(delivery, { action: "keep" })], undefined)).toEqual(["already"]);
    expect(await outcomeFields(lab, "r1")).toMatchObject({ body: finalRecord(1) });
  });

  it("may have failed before its first token", async () => {
    await admitStream(lab, "r1");
    const delivery = await takeOne(lab.queue);
    const error = { code: "invalid_argument" as const, message: "the prompt is too long" };
    const final = record(0, { final: true, reason: "error", error });
    const append = { entry: delivery.entry, request: "r1", first: 0, records: [final], final: true };
    expect(await appendTokens(streaming(lab.queue), [append])).toEqual(["appended"]);
    expect(await commitSealed(lab.queue, delivery, { action: "keep" })).toEqual(["committed"]);
    const { kind, body } = storeOutcome({ kind: "error", ...error });
    expect(await outcomeFields(lab, "r1")).toMatchObject({ kind, body: body.toString() });
  });

  it("is committed beside turns of conversations: a generator's lane has both", async () => {
    await admitStream(lab, "r1");
    await admitStep(lab, { request: "r2", start: true });
    await admitStream(lab, "r3");
    const deliveries = await take(lab.queue);
    for (const delivery of deliveries) await seal(lab.queue, delivery);
    const turns = deliveries.filter(({ sequence }) => sequence !== undefined);
    const alone = turns.map((turn) => result(turn, put("s")));
    expect(await commit(streaming(lab.queue), alone, IDLE_MS)).toEqual(["committed"]);
    const settlements = deliveries.map((delivery) => result(delivery, put("s")));
    expect(await commit(streaming(lab.queue), settlements, IDLE_MS)).toEqual(["committed", "already", "committed"]);
    for (const request of ["r1", "r2", "r3"]) {
      const { began, ended } = await outcomeFields(lab, request);
      expect(Number(ended)).toBeGreaterThanOrEqual(Number(began));
      const left = await lab.redis.pttl(logKey(lab.lane, request));
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(60_000);
    }
    expect(await lab.redis.xlen(laneKeys(lab.lane).ready)).toBe(0);
  });

  it("is not expired by the gateway that waits for it", async () => {
    await admitStream(lab, "r1");
    const delivery = await takeOne(lab.queue);
    await seal(lab.queue, delivery);
    const pending = new PendingRequests(lab.redis, silentBus, log);
    const key = outcomeKey(lab.lane, "r1");
    const expected = pending.expect({ request: "r1", key, outcomeTtlMs: 1_000, deadlineMs: 0 });
    expected.admitted();
    const stop = new AbortController();
    const watching = pending.watch(stop.signal);
    try {
      // Each look asks Redis once.
      const calls = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await lab.redis.info("commandstats"))?.[1]);
      const before = await calls();
      await expect.poll(calls).toBeGreaterThan(before + 2);
      expect(pending.size).toBe(1);
      await commitSealed(lab.queue, delivery, { action: "keep" });
      expect(await expected.outcome).toEqual({ kind: "result", body: Buffer.from(finalRecord(1)) });
    } finally {
      stop.abort();
      await watching;
    }
  });

  it.each([
    { what: "sealed", sealed: true, kind: "result", final: { reason: "finished" } },
    {
      what: "still running",
      sealed: false,
      kind: "error",
      final: { reason: "error", error: { code: "request_lost" } },
    },
  ])("ends as its final record says when its turn is deleted from outside while $what", async (expected) => {
    await admitStep(lab, { request: "r1", start: true });
    const delivery = await takeOne(lab.queue);
    if (expected.sealed) await seal(lab.queue, delivery);
    await lab.redis.xdel(laneKeys(lab.lane).ready, delivery.entry);
    const stop = new AbortController();
    const reconciling = reconcileWhileOpen(streaming(lab.queue), log, stop.signal);
    try {
      await expect
        .poll(() => outcomeFields(lab, "r1"), { timeout: 15_000 })
        .toMatchObject({ kind: expected.kind, sealed: "1" });
    } finally {
      stop.abort();
      await reconciling;
    }
    const records = await logOf(lab, "r1");
    expect(JSON.parse(records.at(-1) ?? "")).toMatchObject({ final: true, ...expected.final });
    expect(await commit(streaming(lab.queue), [result(delivery, put("s"))], IDLE_MS)).toEqual(["already"]);
  });
});

describe("readProgress", () => {
  const lab = useLab();
  const states = async (...requests: string[]) =>
    (await readProgress(lab.redis, lab.lane, requests)).map(({ state, records }) => [state, records.map(String)]);

  it("says how far each stream has come", async () => {
    for (const request of ["new", "open", "sealed", "ended"]) await admitStream(lab, request);
    const deliveries = await take(lab.queue);
    const [, open, sealed, ended] = deliveries;
    if (!open || !sealed || !ended) throw new Error("four should be ready");
    const append = { entry: open.entry, request: "open", first: 0, records: [record(0)], final: false };
    await appendTokens(streaming(lab.queue), [append]);
    for (const delivery of [sealed, ended]) await seal(lab.queue, delivery);
    await commitSealed(lab.queue, ended, { action: "keep" });
    expect(await states("new", "open", "sealed", "ended", "none")).toEqual([
      ["open", []],
      ["open", [record(0)]],
      ["sealed", [record(0), finalRecord(1)]],
      ["ended", [record(0), finalRecord(1)]],
      ["ended", []],
    ]);
    expect(await states()).toEqual([]);
  });

  it("notes since when a stream stands that is taken over, until it moves", async () => {
    await admitStream(lab, "r1");
    const delivery = await takeOne(lab.queue);
    const since = async (takenOver = true) =>
      (await readProgress(lab.redis, lab.lane, ["r1"], takenOver))[0]?.standsSince ?? NaN;
    expect(await since(false)).toBe(0);
    const first = await since();
    const now = async () => {
      const [seconds, micros] = await lab.redis.time();
      return Number(seconds) * 1_000 + Number(micros) / 1_000;
    };
    expect(first).toBeLessThanOrEqual(await now());
    await expect.poll(now).toBeGreaterThan(first + 1);
    expect(await since()).toBe(first);
    const append = { entry: delivery.entry, request: "r1", first: 0, records: [record(0)], final: false };
    await appendTokens(streaming(lab.queue), [append]);
    const second = await since();
    expect(second).toBeGreaterThan(first);
    expect(await since()).toBe(second);
    expect((await readProgress(lab.redis, lab.lane, ["none"], true))[0]?.standsSince).toBe(0);
  });

  it("says until when somebody wants it", async () => {
    await admitStream(lab, "r1");
    await admitStream(lab, "r2", 5_000);
    const [forEver, attended] = await readProgress(lab.redis, lab.lane, ["r1", "r2"]);
    const { wanted } = await outcomeFields(lab, "r2");
    if (!forEver || !attended) throw new Error("two were asked for");
    expect(isUnwanted(forEver, Number.MAX_SAFE_INTEGER)).toBe(false);
    expect(isUnwanted(attended, Number(wanted))).toBe(false);
    expect(isUnwanted(attended, Number(wanted) + 1)).toBe(true);
  });
});

describe("the outcome of a sealed stream", () => {
  const lost = storeOutcome({ kind: "error", code: "request_lost", message: "the stream's log is gone" });

  it.each([
    { log: "is gone", records: [] },
    { log: "has no final record", records: [record(0)] },
    { log: "is not ours", records: ["{"] },
  ])("is an error when its log $log", ({ records }) => {
    expect(sealedOutcome(records)).toEqual(lost);
  });
});
