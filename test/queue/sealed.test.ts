import { describe, expect, it } from "vitest";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import type { Delivery } from "#shared/queue/entry.js";
import { storeOutcome } from "#shared/contract/outcome.js";
import { laneKeys, logKey, outcomeKey } from "#shared/queue/keys.js";
import { PendingRequests } from "../../gateway/outcomes/pending.js";
import { appendTokens } from "#shared/queue/work/streams/append-tokens.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import type { StateChange } from "#shared/queue/work/commit/settlement.js";
import { isUnwanted, readProgress } from "#shared/queue/work/streams/read-progress.js";
import { sealedOutcome } from "#shared/queue/work/commit/sealed-outcome.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { takeOver } from "#shared/queue/work/streams/take-over.js";
import {
  IDLE_MS,
  finalRecord,
  put,
  record,
  result,
  streaming,
  useLab,
  type OneLane,
  addressOf,
  type Lab,
  secret,
} from "../support/queue/lab.js";
import { silentBus, silentLog } from "../support/silent.js";
import { whileReconciling } from "../support/queue/reconciling.js";

function seal(queue: OneLane, { entry, request }: Delivery, final = finalRecord(1)) {
  return appendTokens(streaming(queue), [
    { lane: queue.lane, entry, tenant: DEFAULT_TENANT, request, first: 0, records: [record(0), final], final: true },
  ]);
}

/** Commits the outcome in the final record, as a worker that finds a sealed log does. */
async function commitSealed(queue: OneLane, delivery: Delivery, state: StateChange) {
  const [progress] = await readProgress(queue.redis, [addressOf(queue, delivery.request)]);
  if (progress?.state !== "sealed") throw new Error(`the log is ${progress?.state}`);
  const settlement = { delivery, outcome: sealedOutcome(progress.records), state, deadReason: undefined };
  return commit(streaming(queue), [settlement], IDLE_MS);
}

async function lapse(lab: Lab, request: string) {
  const address = lab.addressOf(request);
  return {
    outcome: await lab.redis.pexpiretime(outcomeKey(address)),
    log: await lab.redis.pexpiretime(logKey(address)),
  };
}

describe("a sealed request", () => {
  const lab = useLab();

  it("takes its outcome from its owner's commit alone, and its log then lives as long", async () => {
    await lab.admitStream("r1");
    const delivery = await lab.takeOne();
    expect(await seal(lab.queue, delivery)).toEqual(["appended"]);
    const before = await lapse(lab, "r1");
    expect(before.log).toBe(before.outcome);
    expect(await lab.giveError("r1", "{}")).toEqual({ said: "sealed" });
    expect(await commitSealed(lab.queue, delivery, { action: "keep" })).toEqual(["committed"]);
    const fields = await lab.outcomeFields("r1");
    expect(fields).toMatchObject({ kind: "result", body: finalRecord(1) });
    expect(Number(fields["ended"])).toBeGreaterThanOrEqual(Number(fields["began"]));
    // Both keys were kept for an hour beyond the deadline, in case every process dies.
    const after = await lapse(lab, "r1");
    expect(before.outcome - after.outcome).toBeGreaterThan(3_000_000);
    expect(before.log - after.log).toBeGreaterThan(3_000_000);
    expect(await lab.giveError("r1", "{}")).toMatchObject({ said: "known" });
  });

  it("is only committed by the worker that takes it over, and refused to the one that sealed it", async () => {
    await lab.admitStream("r1");
    const delivery = await lab.takeOne();
    await seal(lab.queue, delivery);
    await takeFrom(lab.other, lab.queue.consumer, 10);
    expect(await takeOver(streaming(lab.other), [delivery], "a")).toEqual(["together"]);
    expect(await commit(streaming(lab.queue), [result(delivery, { action: "keep" })], undefined)).toEqual(["lost"]);
    expect(await commitSealed(lab.other, delivery, { action: "keep" })).toEqual(["committed"]);
    expect(await commit(streaming(lab.queue), [result(delivery, { action: "keep" })], undefined)).toEqual(["already"]);
    expect(await lab.outcomeFields("r1")).toMatchObject({ body: finalRecord(1) });
  });

  it("may have failed before its first token", async () => {
    await lab.admitStream("r1");
    const delivery = await lab.takeOne();
    const error = { code: "invalid_argument" as const, message: "the prompt is too long" };
    const final = record(0, { final: true, reason: "error", error });
    expect(await lab.append(delivery.entry, "r1", [final], true)).toEqual(["appended"]);
    expect(await commitSealed(lab.queue, delivery, { action: "keep" })).toEqual(["committed"]);
    const { kind, body } = storeOutcome({ kind: "error", ...error });
    expect(await lab.outcomeFields("r1")).toMatchObject({ kind, body: body.toString() });
  });

  it("is committed beside turns of conversations: a generator's lane has both", async () => {
    await lab.admitStream("r1");
    await lab.admitStep({ request: "r2", start: true });
    await lab.admitStream("r3");
    const deliveries = await lab.take();
    for (const delivery of deliveries) await seal(lab.queue, delivery);
    const turns = deliveries.filter(({ sequence }) => sequence !== undefined);
    const alone = turns.map((turn) => result(turn, put("s")));
    expect(await commit(streaming(lab.queue), alone, IDLE_MS)).toEqual(["committed"]);
    const settlements = deliveries.map((delivery) => result(delivery, put("s")));
    expect(await commit(streaming(lab.queue), settlements, IDLE_MS)).toEqual(["committed", "already", "committed"]);
    for (const request of ["r1", "r2", "r3"]) {
      const { began, ended } = await lab.outcomeFields(request);
      expect(Number(ended)).toBeGreaterThanOrEqual(Number(began));
      const left = await lab.redis.pttl(logKey(lab.addressOf(request)));
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(60_000);
    }
    expect(await lab.redis.xlen(laneKeys(lab.lane).ready)).toBe(0);
  });

  it("is not expired by the gateway that waits for it", async () => {
    await lab.admitStream("r1");
    const delivery = await lab.takeOne();
    await seal(lab.queue, delivery);
    const pending = new PendingRequests({ redis: lab.redis, bus: silentBus, gateway: "gw", secret, log: silentLog });
    const expected = pending.expect({ address: lab.addressOf("r1"), outcomeTtlMs: 1_000, deadlineMs: 0 });
    expected.admitted(false);
    const stop = new AbortController();
    const watching = pending.watch(stop.signal);
    try {
      // Each look of the gateway is one call to Redis.
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
    await lab.admitStep({ request: "r1", start: true });
    const delivery = await lab.takeOne();
    if (expected.sealed) await seal(lab.queue, delivery);
    await lab.redis.xdel(laneKeys(lab.lane).ready, delivery.entry);
    await whileReconciling(streaming(lab.queue), IDLE_MS, async () => {
      await expect.poll(() => lab.outcomeFields("r1")).toMatchObject({ kind: expected.kind, sealed: "1" });
    });
    const records = await lab.logOf("r1");
    expect(JSON.parse(records.at(-1) ?? "")).toMatchObject({ final: true, ...expected.final });
    expect(await commit(streaming(lab.queue), [result(delivery, put("s"))], IDLE_MS)).toEqual(["already"]);
  });
});

describe("readProgress", () => {
  const lab = useLab();
  const read = (requests: readonly string[], takenOver = false) =>
    readProgress(
      lab.redis,
      requests.map((request) => lab.addressOf(request)),
      takenOver,
    );
  const states = async (...requests: string[]) =>
    (await read(requests)).map(({ state, records }) => [state, records.map(String)]);

  it("says how far each stream has come", async () => {
    for (const request of ["new", "open", "sealed", "ended"]) await lab.admitStream(request);
    const deliveries = await lab.take();
    const [, open, sealed, ended] = deliveries;
    if (!open || !sealed || !ended) throw new Error("four should be ready");
    await lab.append(open.entry, "open", [record(0)]);
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
    await lab.admitStream("r1");
    const delivery = await lab.takeOne();
    const since = async (takenOver = true) => (await read(["r1"], takenOver))[0]?.standsSince ?? NaN;
    expect(await since(false)).toBe(0);
    const first = await since();
    const now = async () => {
      const [seconds, micros] = await lab.redis.time();
      return Number(seconds) * 1_000 + Number(micros) / 1_000;
    };
    expect(first).toBeLessThanOrEqual(await now());
    await expect.poll(now).toBeGreaterThan(first + 1);
    expect(await since()).toBe(first);
    await lab.append(delivery.entry, "r1", [record(0)]);
    const second = await since();
    expect(second).toBeGreaterThan(first);
    expect(await since()).toBe(second);
    expect((await read(["none"], true))[0]?.standsSince).toBe(0);
  });

  it("says until when somebody wants it", async () => {
    await lab.admitStream("r1");
    await lab.admitStream("r2", 5_000);
    const [forEver, attended] = await read(["r1", "r2"]);
    const { wanted } = await lab.outcomeFields("r2");
    if (!forEver || !attended) throw new Error("two were asked for");
    expect(isUnwanted(forEver, Number.MAX_SAFE_INTEGER)).toBe(false);
    expect(isUnwanted(attended, Number(wanted))).toBe(false);
    expect(isUnwanted(attended, Number(wanted) + 1)).toBe(true);
  });
});
