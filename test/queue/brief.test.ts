/**
 * Brief requests: the facts of a waiting request are a field among the counters, and only an ended
 * request has its own record.
 */
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { recount } from "#shared/queue/admission/recount.js";
import { findOutcomes } from "#shared/queue/admission/find-outcomes.js";
import { detach } from "#shared/queue/admission/attend.js";
import { readLogs } from "#shared/queue/admission/read-logs.js";
import { withdraw } from "#shared/queue/admission/withdraw.js";
import type { Applicant } from "#shared/queue/admission/admit.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import type { Delivery } from "#shared/queue/entry.js";
import { giveOutcome, giveOutcomeInQueue } from "#shared/queue/ends/give-outcome.js";
import { GROUP, laneKeys, loadKey, loadTurnKey, openKey, outcomeKey, requestInKey } from "#shared/queue/keys.js";
import { readRecord } from "#shared/queue/pieces/outcome.js";
import { pinText } from "#shared/queue/address.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { release } from "#shared/queue/work/read/release.js";
import { requeue } from "#shared/queue/work/read/requeue.js";
import type { Settlement, StateChange } from "#shared/queue/work/commit/settlement.js";
import { readStatus } from "../../gateway/requests/status.js";
import { admit, IDLE_MS, LIMITS, put, result, SEQUENCE, useLab, applicant } from "../support/queue/lab.js";

const expired = { kind: "error", body: Buffer.from("expired") } as const;
const cancelled = { code: "cancelled", message: "the request was cancelled", ttlMs: 60_000, stream: false } as const;

describe("a brief request", () => {
  const lab = useLab();
  beforeEach(() => lab.redis.del(loadKey(undefined), openKey(loadKey(undefined))));
  afterEach(async () => {
    // Ends every request, so that no request is counted in the next test.
    for (const delivery of await lab.take()) await finish([delivery], { action: "keep" });
  });

  const asks = (request: string, more: Partial<Applicant> = {}): Applicant => ({
    ...applicant(lab.lane, request, request),
    attendedMs: undefined,
    ...more,
  });
  const step = (request: string, start = false): Applicant =>
    asks(request, { sequence: { name: SEQUENCE, start, end: false } });
  const enter = async (applicants: readonly Applicant[], limits = {}) => {
    const said = await admit(lab.redis, { gateway: "gw", limits: { ...LIMITS, ...limits } }, applicants);
    expect(new Set(said.map((one) => one.said))).toEqual(new Set(["admitted"]));
  };
  const address = (request: string) => lab.addressOf(request);
  const key = (request: string) => outcomeKey(address(request));
  const open = () => lab.redis.hkeys(openKey(loadKey(undefined)));
  const isOpen = async (request: string) => (await open()).includes(requestInKey(key(request)));
  const queued = () => lab.redis.xlen(laneKeys(lab.lane).ready);
  const found = async (request: string) => (await findOutcomes(lab.redis, [key(request)]))[0];
  const finish = (deliveries: readonly Delivery[], state: StateChange = { action: "drop" }) =>
    commit(
      lab.queue,
      deliveries.map((delivery) => result(delivery, state)),
      IDLE_MS,
    );
  const finishAll = (settled: readonly Settlement[]) => commit(lab.queue, settled, IDLE_MS);
  const cancel = async (request: string) => (await cancelRequest(lab.redis, address(request), cancelled)).said;

  it("has no key of its own while it is queued, and all the same is known", async () => {
    const before = Date.now();
    await enter([asks("r1"), step("r2", true)]);
    expect(await lab.redis.exists(key("r1"), key("r2"))).toBe(0);
    for (const request of ["r1", "r2"]) {
      expect(await found(request)).toEqual({ said: "open" });
      const record = await readRecord(lab.redis, address(request));
      expect(record?.kind).toBeUndefined();
      expect(record).toMatchObject({ pin: pinText(lab.lane), by: "gw", sealed: false, wanted: false });
      expect(Math.abs((record?.at ?? 0) - before)).toBeLessThan(60_000);
    }
    expect(await found("r3")).toEqual({ said: "no record" });
    expect(await readRecord(lab.redis, address("r3"))).toBeUndefined();
  });

  it.each([
    ["a key", { digest: "d" }, {}],
    ["a client that does not wait", { attendedMs: 0 }, {}],
    ["a result that is kept for long", { outcomeTtlMs: 5_000 }, { keptMs: 5_000 }],
  ])("is none that has %s", async (_, more, limits) => {
    await enter([asks("r1", more)], limits);
    expect(await lab.redis.hget(key("r1"), "by")).toBe("gw");
  });

  it("ends with a result, once, and nobody counts it any more", async () => {
    await enter([asks("r1"), step("r2", true)]);
    const deliveries = await lab.take();
    expect(await finish(deliveries, put("s1"))).toEqual(["committed", "committed"]);
    for (const request of ["r1", "r2"]) {
      expect(await isOpen(request)).toBe(false);
      expect(await found(request)).toMatchObject({ said: "ended" });
      const record = await readRecord(lab.redis, address(request));
      expect(record).toMatchObject({ kind: "result", body: Buffer.from("answer"), pin: pinText(lab.lane), by: "gw" });
      expect(record?.ended).toBeGreaterThanOrEqual(record?.at ?? Infinity);
      const ttl = await lab.redis.pttl(key(request));
      expect(ttl).toBeGreaterThan(0);
      expect(ttl).toBeLessThanOrEqual(60_000);
    }
    expect(await lab.currentState()).toBe("s1");
    expect(await finish(deliveries, put("s2"))).toEqual(["already", "already"]);
    expect(await lab.currentState()).toBe("s1");
    // A gateway removes the outcome after it has delivered it.
    await lab.redis.unlink(key("r1"), key("r2"));
    expect(await finish(deliveries, put("s2"))).toEqual(["lost", "lost"]);
  });

  it("keeps any bytes of its result", async () => {
    await enter([asks("r1")]);
    const body = Buffer.from([0, 10, 255, 0, 124, 13, 10]);
    const delivery = await lab.takeOne();
    await commit(lab.queue, [{ ...result(delivery, { action: "drop" }), outcome: { kind: "result", body } }], IDLE_MS);
    expect((await readRecord(lab.redis, address("r1")))?.body).toEqual(body);
    expect(await giveOutcome(lab.redis, address("r1"), expired, 1_000)).toEqual({
      said: "known",
      outcome: { kind: "result", body },
    });
  });

  describe("with a long result", () => {
    const body = randomBytes(5_000);
    const long = (delivery: Delivery, state: StateChange): Settlement => ({
      ...result(delivery, state),
      outcome: { kind: "result", body },
    });
    /** Results written ahead of a commit, and not taken by the commit. */
    const leftApart = () => lab.redis.keys("out:*@*");

    it("has all of it, and a call that is repeated leaves nothing behind", async () => {
      await enter([asks("r1"), step("r2", true)]);
      const settled = (await lab.take()).map((delivery) => long(delivery, put("s1")));
      expect(await commit(lab.queue, settled, IDLE_MS)).toEqual(["committed", "committed"]);
      expect(await commit(lab.queue, settled, IDLE_MS)).toEqual(["already", "already"]);
      for (const request of ["r1", "r2"]) {
        const record = await readRecord(lab.redis, address(request));
        expect(record).toMatchObject({ kind: "result", body, pin: pinText(lab.lane), by: "gw" });
        expect(record?.ended).toBeGreaterThanOrEqual(record?.at ?? Infinity);
        expect(await lab.redis.pttl(key(request))).toBeGreaterThan(0);
      }
      expect(await leftApart()).toEqual([]);
      expect(await lab.currentState()).toBe("s1");
    });

    it("does not pass through the script", async () => {
      await enter([asks("r1"), step("r2", true)]);
      const monitor = await new Redis(lab.url, { lazyConnect: true }).monitor();
      let longest = 0;
      let scripts = 0;
      monitor.on("monitor", (_time: string, call: string[]) => {
        if (!/^evalsha$/i.test(call[0] ?? "")) return;
        scripts++;
        longest = Math.max(longest, ...call.map((arg) => arg.length));
      });
      await finishAll((await lab.take()).map((delivery) => long(delivery, put("s1"))));
      await expect.poll(() => scripts).toBeGreaterThanOrEqual(3);
      monitor.disconnect();
      expect(longest).toBeLessThan(1_000);
    });

    it("has no effect where it was cancelled, or another worker has it", async () => {
      await enter([asks("r1"), step("r2", true), asks("r3")]);
      const held = await lab.take();
      for (const request of ["r1", "r2"]) await cancel(request);
      const others = held.map((delivery) => long(delivery, put("s1")));
      expect(await commit(lab.other, others, IDLE_MS)).toEqual(["already", "already", "lost"]);
      expect(await finishAll(others)).toEqual(["superseded", "superseded", "committed"]);
      expect(await leftApart()).toEqual([]);
      expect((await readRecord(lab.redis, address("r1")))?.kind).toBe("error");
    });

    it("is kept in a full Redis, too", async () => {
      await enter([asks("r1"), step("r2", true)]);
      const settled = (await lab.take()).map((delivery) => long(delivery, put("s1")));
      await lab.redis.config("SET", "maxmemory", "1");
      try {
        expect(await finishAll(settled)).toEqual(["committed", "committed"]);
      } finally {
        await lab.redis.config("SET", "maxmemory", "0");
      }
      for (const request of ["r1", "r2"]) expect((await readRecord(lab.redis, address(request)))?.body).toEqual(body);
      expect(await lab.currentState()).toBe("s1");
    });
  });

  it("that is cancelled takes no effect, whoever has it", async () => {
    await enter([asks("r1")]);
    const delivery = await lab.takeOne();
    await enter([asks("r2")]);
    expect([await cancel("r1"), await cancel("r2"), await cancel("r2")]).toEqual(["given", "given", "known"]);
    expect(await queued()).toBe(1);
    expect(await open()).toEqual([]);
    expect(await withdraw(lab.redis, address("r2"))).toBe("left");
    expect(await finish([delivery])).toEqual(["superseded"]);
    expect(await readRecord(lab.redis, address("r1"))).toMatchObject({ kind: "error", by: "gw" });
    expect(await queued()).toBe(0);
  });

  it("that is a step keeps its place when it is cancelled, and changes nothing", async () => {
    await enter([step("r1", true), step("r2"), step("r3")]);
    await finish([await lab.takeOne()], put("s1"));
    expect(await cancel("r2")).toBe("given");
    expect(await isOpen("r2")).toBe(true);
    expect(await found("r2")).toMatchObject({ said: "ended" });
    const second = await lab.takeOne();
    expect(await finish([second], put("s2"))).toEqual(["superseded"]);
    expect(await isOpen("r2")).toBe(false);
    expect(await lab.currentState()).toBe("s1");
    expect(await finish([await lab.takeOne()], put("s3"))).toEqual(["committed"]);
    expect(await open()).toEqual([]);
  });

  it("that has waited for too long expires in the queue, but not in a worker's hands", async () => {
    await enter([asks("r1"), asks("r2"), step("r3", true)]);
    const [held] = await lab.take({ ...lab.queue });
    if (held === undefined) throw new Error("nothing is ready");
    expect((await giveOutcomeInQueue(lab.redis, address("r1"), expired, 1_000)).said).toBe("held");
    expect((await giveOutcomeInQueue(lab.redis, address("r3"), expired, 1_000)).said).toBe("held");
    await enter([asks("r4")]);
    expect((await giveOutcomeInQueue(lab.redis, address("r4"), expired, 1_000)).said).toBe("given");
    expect(await isOpen("r4")).toBe(false);
    expect(await finish([held])).toEqual(["committed"]);
  });

  it("is found where a worker has given it back, or it was queued anew", async () => {
    await enter([asks("r1"), asks("r2")]);
    const [first, second] = await lab.take();
    if (first === undefined || second === undefined) throw new Error("two should be there");
    await release(lab.queue, [first]);
    await lab.redis.xack(laneKeys(lab.lane).ready, GROUP, second.entry);
    await requeue(lab.queue, [second]);
    for (const request of ["r1", "r2"]) expect(await cancel(request)).toBe("given");
    expect(await queued()).toBe(0);
  });

  it("is let go by a recount once its time is over, or its sequence has gone on", async () => {
    await enter([asks("r1"), step("r2", true), asks("r3")]);
    await cancel("r2");
    const field = requestInKey(key("r1"));
    const text = (await lab.redis.hget(openKey(loadKey(undefined)), field)) ?? "";
    const facts = text.split("|");
    facts[4] = "1";
    await lab.redis.hset(openKey(loadKey(undefined)), field, facts.join("|"));
    const nextRound = async () => {
      await lab.redis.del(loadTurnKey(loadKey(undefined)));
      await recount(lab.redis, loadKey(undefined), 60_000, new AbortController().signal);
    };
    await nextRound();
    expect([await isOpen("r1"), await isOpen("r2"), await isOpen("r3")]).toEqual([false, true, true]);
    await lab.redis.del(`seqs:${laneKeys(lab.lane).live.slice("live:".length)}`);
    await nextRound();
    expect([await isOpen("r2"), await isOpen("r3")]).toEqual([false, true]);
  });

  it("is known to readers of streams, and costs those of others nothing", async () => {
    await lab.admitStream("s1", 5_000);
    await enter([asks("r1"), asks("r2")]);
    await cancel("r1");
    const reads = ["s1", "r1", "r2", "r3"].map((request) => ({ ...address(request), from: 0 }));
    expect((await readLogs(lab.redis, reads)).map(({ said }) => said)).toEqual([
      "running",
      "ended",
      "running",
      "unknown",
    ]);
    const detached = await Promise.all(["r1", "r2", "r3"].map((request) => detach(lab.redis, address(request))));
    expect(detached).toEqual(["ended", "background", "unknown"]);
    const status = async (request: string) => (await readStatus(lab.redis, address(request), false)).state;
    expect([await status("r1"), await status("r2")]).toEqual(["cancelled", "queued"]);
  });

  it("is answered as failed where somebody has put something else where it would be noted", async () => {
    await lab.redis.set(openKey(loadKey(undefined)), "no hash");
    const admitted = await admit(lab.redis, { gateway: "gw", limits: LIMITS }, [
      asks("r1"),
      asks("r2", { attendedMs: 0 }),
    ]);
    expect(admitted.map(({ said }) => said)).toEqual(["failed", "admitted"]);
    expect(await readRecord(lab.redis, address("r1"))).toBeUndefined();
  });

  it("ends once where one call commits its delivery twice", async () => {
    await enter([asks("r1")]);
    const delivery = await lab.takeOne();
    expect(await finish([delivery, delivery])).toEqual(["committed", "superseded"]);
  });

  it("costs a step one command of its own, and its commit two", async () => {
    const count = 50;
    const steps = (start: boolean, prefix: string) =>
      Array.from({ length: count }, (_, i) =>
        asks(`${prefix}${i}`, { sequence: { name: `default:u${i}`, start, end: false } }),
      );
    await enter(steps(true, "a"));
    await finish(await lab.take(), put("s"));
    const before = await calls();
    await enter(steps(false, "b"));
    const admitted = await calls();
    const settled = await lab.take();
    const taken = await calls();
    await finish(settled, put("t"));
    const after = await calls();
    // Commands that do not depend on the number of steps are at most twenty in each call.
    expect(admitted - before).toBeLessThanOrEqual(count + 20);
    expect(after - taken).toBeLessThanOrEqual(2 * count + 20);
  });

  async function calls(): Promise<number> {
    const stats = await lab.redis.info("commandstats");
    return [...stats.matchAll(/cmdstat_(\S+):calls=(\d+)/g)]
      .filter(([, name]) => !/^(info|evalsha|eval)$/.test(name ?? ""))
      .reduce((sum, [, , count]) => sum + Number(count), 0);
  }
});
