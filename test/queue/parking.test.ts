/** The order of requests behind a full ready stream, and the ways in which they leave. */
import { describe, expect, it } from "vitest";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import type { Delivery } from "#shared/queue/entry.js";
import { giveOutcomeInQueue } from "#shared/queue/ends/give-outcome.js";
import { GROUP, laneKeys, loadKey, openKey, outcomeKey, requestInKey, sequencesKey } from "#shared/queue/keys.js";
import { readRecord } from "#shared/queue/pieces/outcome.js";
import { usualTerms, type WaitingTerms } from "#shared/queue/pieces/parking.js";
import type { Applicant } from "#shared/queue/admission/admit.js";
import { lookAtLane } from "#shared/queue/admission/look-at-lane.js";
import { withdraw } from "#shared/queue/admission/withdraw.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { mendSequence } from "#shared/queue/work/commit/mend-sequence.js";
import { refill } from "#shared/queue/work/read/refill.js";
import { release } from "#shared/queue/work/read/release.js";
import { lanesByKey } from "#shared/queue/work/stream.js";
import { admit, IDLE_MS, put, result, useLab, LIMITS, applicant } from "../support/queue/lab.js";

const expired = { kind: "error", body: Buffer.from("expired") } as const;

describe.each([
  ["requests", 0],
  ["brief requests", undefined],
])("%s behind a full ready stream", (_, attendedMs) => {
  const lab = useLab();
  const WINDOW = 2;

  function asks(request: string, waiting: Partial<WaitingTerms> = {}, more: Partial<Applicant> = {}): Applicant {
    return {
      ...applicant(lab.lane, request, request),
      attendedMs,
      window: WINDOW,
      waiting: { ...usualTerms, ...waiting },
      ...more,
    };
  }
  const admitAll = (applicants: readonly Applicant[], queue = 1_000) =>
    admit(lab.redis, { gateway: "gw", limits: { ...LIMITS, queue } }, applicants);
  const said = async (applicants: readonly Applicant[], queue?: number) =>
    (await admitAll(applicants, queue)).map((one) => one.said);
  const counts = async () => {
    const { ready, parked } = laneKeys(lab.lane);
    return { ready: await lab.redis.xlen(ready), parked: await lab.redis.hlen(parked) };
  };
  const finish = (deliveries: readonly Delivery[], action: "drop" | "keep" = "drop") =>
    commit(
      lab.queue,
      deliveries.map((delivery) => result(delivery, { action })),
      IDLE_MS,
    );
  /** Runs all requests, one batch after the other. @returns the order */
  async function runAll(): Promise<string[]> {
    const order: string[] = [];
    for (let batch = await lab.take(); batch.length > 0; batch = await lab.take()) {
      order.push(...batch.map(({ tenant, request }) => (tenant === "default" ? request : tenant)));
      await finish(batch);
    }
    return order;
  }
  const keysLeft = async () => {
    const keys = await lab.redis.keys(`*${lab.lane.model}:*`);
    return keys.filter((key) => /^(?:queue|parked|window):/.test(key));
  };

  it("are parked, run in their order, and leave nothing behind", async () => {
    const names = Array.from({ length: 7 }, (_, i) => `r${i}`);
    expect(await said(names.map((name) => asks(name)))).toEqual(names.map(() => "admitted"));
    expect(await counts()).toEqual({ ready: 2, parked: 5 });
    expect(await runAll()).toEqual(names);
    expect(await counts()).toEqual({ ready: 0, parked: 0 });
    expect(await keysLeft()).toEqual([]);
  });

  it("count by their level, if the model has levels", async () => {
    const of = (level: number, tenant: string): Applicant => ({ ...asks(`r${level}`, { level }), tenant });
    await said([of(1, "x"), of(1, "y"), of(1, "a"), of(2, "a"), of(2, "b"), of(2, "c"), of(3, "c")]);
    const look = (levels: number) => lookAtLane(lab.redis, lab.lane, levels);
    expect(await look(0)).toMatchObject({ ready: 2, running: 0, parked: 5, levels: [] });
    expect((await look(2)).levels).toEqual([1, 3]);
    expect((await look(3)).levels).toEqual([1, 3, 1]);
    await runAll();
    expect(await look(3)).toMatchObject({ ready: 0, parked: 0, levels: [] });
  });

  it("count in the limit of the lane", async () => {
    expect(
      await said(
        ["a", "b", "c", "d"].map((name) => asks(name)),
        3,
      ),
    ).toEqual(["admitted", "admitted", "admitted", "queue-full"]);
    expect(await said([asks("e")], 3)).toEqual(["queue-full"]);
  });

  it("are shared out to tenants by their weights, however many each has", async () => {
    await admitAll([asks("x"), asks("y")]);
    const shares = { a: 1, b: 2, c: 4 };
    for (const [tenant, weight] of Object.entries(shares)) {
      const many = Array.from({ length: 100 }, (_, i) => asks(`${i}`, { weight }, { tenant }));
      await admitAll(many);
    }
    const order = (await runAll()).slice(2, 2 + 140);
    const count = (tenant: string) => order.filter((one) => one === tenant).length;
    expect([count("a"), count("b"), count("c")]).toEqual([20, 40, 80]);
  });

  it("count a tenant's weight that was lowered to 1 from its next request on", async () => {
    await admitAll([asks("x"), asks("y")]);
    const before = { a: 4, b: 1 };
    for (const [tenant, weight] of Object.entries(before)) {
      await admitAll(Array.from({ length: 100 }, (_, i) => asks(`${i}`, { weight }, { tenant })));
    }
    await finish(await lab.take());
    // A returned request keeps the weight that its tenant had.
    const held = await lab.take();
    await admitAll([asks("late", { weight: 1 }, { tenant: "a" })]);
    expect(held.map(({ tenant }) => tenant)).toContain("a");
    await release(lab.queue, held);
    const order = (await runAll()).slice(0, 40);
    const count = order.filter((one) => one === "a").length;
    // Between two tenants with the same share, either may have the turn at both ends.
    expect(Math.abs(count - 20)).toBeLessThanOrEqual(3);
  });

  it("give a tenant that comes late its share from then on, and no more", async () => {
    await admitAll([asks("x"), asks("y")]);
    await admitAll(Array.from({ length: 40 }, (_, i) => asks(`${i}`, {}, { tenant: "a" })));
    const order: string[] = [];
    for (let i = 0; i < 10; i++) {
      const batch = await lab.take();
      await finish(batch);
    }
    await admitAll(Array.from({ length: 40 }, (_, i) => asks(`${i}`, {}, { tenant: "b" })));
    order.push(...(await runAll()).slice(2, 12));
    expect(order.filter((one) => one === "b")).toHaveLength(5);
  });

  it("go by priority level before all else", async () => {
    await admitAll([asks("x"), asks("y")]);
    for (const level of [3, 1, 2]) await admitAll([asks(`${level}a`, { level }), asks(`${level}b`, { level })]);
    expect((await runAll()).slice(2)).toEqual(["1a", "1b", "2a", "2b", "3a", "3b"]);
  });

  it("go behind all others of their level once they have waited for their delay", async () => {
    await admitAll([asks("x"), asks("y")]);
    await admitAll([asks("late", { delayMs: 1 }), asks("patient", { delayMs: 60_000 }), asks("low", { level: 2 })]);
    const [seconds] = await lab.redis.time();
    await expect.poll(async () => Number((await lab.redis.time())[0])).toBeGreaterThan(Number(seconds));
    await admitAll([asks("next")]);
    expect((await runAll()).slice(2)).toEqual(["patient", "next", "late", "low"]);
    expect(await keysLeft()).toEqual([]);
  });

  it("are refused where too many of their level wait", async () => {
    await admitAll([asks("x"), asks("y")]);
    const first = (name: string) => asks(name, { level: 1, mostParked: 2 });
    expect(await said([first("a"), first("b"), first("c")])).toEqual(["admitted", "admitted", "queue-full"]);
    expect(await said([asks("d", { level: 2, mostParked: 1 }), first("e")])).toEqual(["admitted", "queue-full"]);
    await finish(await lab.take());
    expect(await said([first("f")])).toEqual(["admitted"]);
  });

  it("leave at once when they are cancelled, and another goes in their place", async () => {
    await admitAll(["x", "y", "a", "b", "c"].map((name) => asks(name)));
    const ending = { code: "cancelled", message: "no", ttlMs: 60_000, stream: false } as const;
    expect((await cancelRequest(lab.redis, lab.addressOf("a"), ending)).said).toBe("given");
    expect(await counts()).toEqual({ ready: 2, parked: 2 });
    expect(await withdraw(lab.redis, lab.addressOf("a"))).toBe("left");
    expect(await lab.giveError("b", "expired")).toMatchObject({ said: "given" });
    expect(await counts()).toEqual({ ready: 2, parked: 1 });
    // A cancelled ready request leaves room.
    expect((await cancelRequest(lab.redis, lab.addressOf("x"), ending)).said).toBe("given");
    expect(await withdraw(lab.redis, lab.addressOf("x"))).toBe(attendedMs === undefined ? "left" : "withdrawn");
    expect(await counts()).toEqual({ ready: 2, parked: 0 });
    expect(await runAll()).toEqual(["y", "c"]);
    expect(await keysLeft()).toEqual([]);
  });

  it("are refused when they have waited for too long, unless a worker has them", async () => {
    await admitAll(["x", "y", "a", "b"].map((name) => asks(name)));
    const end = async (name: string) =>
      (await giveOutcomeInQueue(lab.redis, lab.addressOf(name), expired, 60_000)).said;
    expect(await end("a")).toBe("given");
    expect(await end("a")).toBe("known");
    expect(await end("x")).toBe("given");
    expect(await counts()).toEqual({ ready: 2, parked: 0 });
    const held = await lab.take();
    expect(held.map(({ request }) => request)).toEqual(["y", "b"]);
    expect(await end("y")).toBe("held");
    expect((await readRecord(lab.redis, lab.addressOf("y")))?.kind).toBeUndefined();
  });

  it("are dropped where somebody has ended them who did not know that they are parked", async () => {
    await admitAll(["x", "y", "a", "b"].map((name) => asks(name)));
    const key = outcomeKey(lab.addressOf("a"));
    if (attendedMs === undefined) await lab.redis.hdel(openKey(loadKey(undefined)), requestInKey(key));
    else await lab.redis.hset(key, "kind", "error", "body", "");
    expect(await runAll()).toEqual(["x", "y", "b"]);
  });

  it("are dropped where somebody has made them, or their sequence, unreadable, and the others go on", async () => {
    const of = (name: string) => asks(name, {}, { sequence: { name: `default:u${name}`, start: true, end: false } });
    await admitAll([of("x"), asks("y"), of("a"), asks("b"), asks("c")]);
    await lab.redis.hset(sequencesKey(lab.lane), "default:ua", "no facts");
    await lab.redis.hset(laneKeys(lab.lane).parked, "default:b", "no entry");
    expect(await runAll()).toEqual(["x", "y", "c"]);
    expect(await keysLeft()).toEqual([]);
  });

  it("wait behind what a worker gives back", async () => {
    await admitAll(["x", "y", "a", "b"].map((name) => asks(name)));
    const [x, y] = await lab.take();
    if (!x || !y) throw new Error("two should be ready");
    expect(await release(lab.queue, [x, y])).toBe(2);
    expect(await runAll()).toEqual(["x", "y", "a", "b"]);
    expect(await keysLeft()).toEqual([]);
  });

  it("keep their level when they are given back", async () => {
    await admitAll([
      asks("x", { level: 2 }),
      asks("y", { level: 2 }),
      asks("a", { level: 1 }),
      asks("b", { level: 2 }),
    ]);
    expect(await release(lab.queue, await lab.take())).toBe(2);
    expect(await runAll()).toEqual(["a", "x", "y", "b"]);
  });

  it("become ready for a worker with room while another has all that is", async () => {
    await admitAll(["x", "y", "a", "b", "c"].map((name) => asks(name)));
    expect(await lab.take()).toHaveLength(2);
    expect(await lab.take(lab.other)).toHaveLength(0);
    expect(await refill(lab.redis, [{ lanes: lanesByKey([lab.lane]), room: 2 }])).toBe(2);
    expect((await lab.take(lab.other)).map(({ request }) => request)).toEqual(["a", "b"]);
    // If there is enough to take, or nothing parked, nothing moves.
    expect(await refill(lab.redis, [{ lanes: lanesByKey([lab.lane]), room: 1 }])).toBe(1);
    expect(await refill(lab.redis, [{ lanes: lanesByKey([lab.lane]), room: 5 }])).toBe(0);
  });

  it("are found by a refill when the ready stream was deleted", async () => {
    await admitAll(["x", "y", "a", "b", "c"].map((name) => asks(name)));
    await lab.redis.del(laneKeys(lab.lane).ready);
    expect(await refill(lab.redis, [{ lanes: lanesByKey([lab.lane]), room: 0 }])).toBe(2);
    await lab.redis.call("XGROUP", "CREATE", laneKeys(lab.lane).ready, GROUP, "0");
    expect(await runAll()).toEqual(["a", "b", "c"]);
  });

  it("go on at half the pace where the window has become smaller", async () => {
    const wide = (name: string) => asks(name, {}, { window: 8 });
    await admitAll(Array.from({ length: 16 }, (_, i) => wide(`w${i}`)));
    await admitAll([asks("n")]);
    const batch = (await lab.take()).slice(0, 4);
    await finish(batch);
    expect(await counts()).toEqual({ ready: 6, parked: 7 });
  });

  describe("that are steps", () => {
    const step = (sequence: string, request: string, start = false, more: Partial<Applicant> = {}) =>
      asks(request, {}, { sequence: { name: `default:${sequence}`, start, end: false }, ...more });

    it("keep the order of their sequence, and begin from what the one before left", async () => {
      await admitAll([asks("x"), asks("y")]);
      await admitAll([step("s", "s1", true), step("s", "s2"), step("t", "t1", true), step("s", "s3")]);
      expect(await counts()).toEqual({ ready: 2, parked: 2 });
      const order: string[] = [];
      const from: string[] = [];
      for (let batch = await lab.take(); batch.length > 0; batch = await lab.take()) {
        order.push(...batch.map(({ request }) => request));
        from.push(...batch.map((delivery) => delivery.from));
        const settled = batch.map((one) =>
          result(one, one.sequence === undefined ? { action: "drop" } : put(`after ${one.request}`)),
        );
        expect(await commit(lab.queue, settled, IDLE_MS)).toEqual(batch.map(() => "committed"));
      }
      expect(order).toEqual(["x", "y", "s1", "t1", "s2", "s3"]);
      expect(from.map((version) => version !== "")).toEqual([false, false, false, false, true, true]);
      expect(await keysLeft()).toEqual([]);
    });

    it("take their turn behind others: a long sequence gets no more than its share", async () => {
      await admitAll([step("s", "s1", true), step("t", "t1", true)]);
      await admitAll(["s2", "s3", "s4"].map((name) => step("s", name)));
      await admitAll([asks("a"), asks("b")]);
      const order: string[] = [];
      for (let batch = await lab.take(); batch.length > 0; batch = await lab.take()) {
        order.push(...batch.map(({ request }) => request));
        await commit(
          lab.queue,
          batch.map((one) => result(one, one.sequence === undefined ? { action: "drop" } : put(one.request))),
          IDLE_MS,
        );
      }
      expect(order).toEqual(["s1", "t1", "a", "b", "s2", "s3", "s4"]);
    });

    it("are sound while they are parked, and lost when somebody deletes them", async () => {
      await admitAll([asks("x"), asks("y"), step("s", "s1", true)]);
      expect(await mendSequence(lab.queue, "default:s")).toBeUndefined();
      await lab.redis.hdel(laneKeys(lab.lane).parked, "default:s1");
      expect(await mendSequence(lab.queue, "default:s")).toEqual(lab.addressOf("s1"));
    });

    it("keep their level when they are given back", async () => {
      const low = (request: string): Applicant => ({
        ...step(request, request, true),
        waiting: { ...usualTerms, level: 3 },
      });
      await admitAll([low("s"), low("t"), asks("a", { level: 2 }), low("u")]);
      expect(await release(lab.queue, await lab.take())).toBe(2);
      expect(await runAll()).toEqual(["a", "s", "t", "u"]);
    });

    it("are given back to the head", async () => {
      await admitAll([step("s", "s1", true), asks("x"), step("t", "t1", true), asks("b")]);
      const [s1, x] = await lab.take();
      if (!s1 || !x) throw new Error("two should be ready");
      expect(await release(lab.queue, [s1])).toBe(1);
      const [again] = await lab.take();
      expect(again).toMatchObject({ request: "s1" });
    });
  });
});
