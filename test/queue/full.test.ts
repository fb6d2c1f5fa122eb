import { afterEach, describe, expect, it } from "vitest";
import { GROUP, laneKeys, outcomeKey } from "#shared/keys.js";
import { cancelRequest } from "#shared/queue/cancel.js";
import { giveOutcome } from "#shared/queue/give-outcome.js";
import { pino } from "pino";
import { enter } from "../../gateway/admission/enter.js";
import { Gatherer } from "../../gateway/admission/gather.js";
import { reconcileWhileOpen } from "../../worker/intake/reconciler.js";
import { ensureGroup, readOwned } from "../../worker/queue/stream.js";
import { servedModel } from "../setup/echo-gateway.js";
import { attend, detach } from "../../gateway/admission/attend.js";
import { abandon } from "../../worker/queue/abandon.js";
import { reapConsumers } from "../../worker/queue/reconcile.js";
import { appendTokens } from "../../worker/queue/append-tokens.js";
import { beginAlone } from "../../worker/queue/begin-alone.js";
import { commit } from "../../worker/queue/commit.js";
import { release } from "../../worker/queue/release.js";
import { renew } from "../../worker/queue/renew.js";
import { reclaim } from "../../worker/queue/reclaim.js";
import { takeOver } from "../../worker/queue/take-over.js";
import {
  IDLE_MS,
  LIMITS,
  admitRequest,
  admitStep,
  admitStream,
  finalRecord,
  put,
  record,
  result,
  streaming,
  take,
  takeOne,
  useLab,
} from "./lab.js";

describe("with Redis out of memory", () => {
  const lab = useLab();
  afterEach(() => lab.redis.config("SET", "maxmemory", "0"));

  it("refuses new work and lets what was admitted be run, handed back, ended and committed", async () => {
    for (const request of ["r1", "r2"]) await admitStep(lab, { request, start: request === "r1" });
    await admitRequest(lab, "r3");
    await admitRequest(lab, "r4");
    const [step, plain, other] = await take(lab.queue);
    if (!step || !plain || !other) throw new Error("three should be ready");
    await lab.redis.config("SET", "maxmemory", "1");

    await expect(admitRequest(lab, "r5")).rejects.toThrow(/^OOM/);
    expect((await renew(lab.queue, [step.entry])).lost).toEqual([]);
    expect((await reclaim(lab.queue, 0, 10, "0-0")).deliveries).toHaveLength(3);
    expect(await beginAlone(lab.queue, step.entry, 3, "run")).toBe("run");
    expect(await commit(lab.queue, [result(step, put("s1"))], IDLE_MS)).toEqual(["committed"]);
    expect(await commit(lab.queue, [result(await takeOne(lab.queue), put("s2"))], IDLE_MS)).toEqual(["committed"]);
    expect(await commit(lab.queue, [result(plain, { action: "drop" })], undefined)).toEqual(["committed"]);
    expect(await release(lab.queue, [other])).toBe(1);
    expect(await giveOutcome(lab.redis, [outcomeKey(lab.lane, "r4")], ["error", "{}", 1_000])).toEqual({
      said: "given",
    });
    expect(await lab.redis.xlen(laneKeys(lab.lane).ready)).toBe(1);
  });

  it("lets streams that were admitted go on, be taken over, attended, finished and cancelled", async () => {
    const queue = streaming(lab.queue);
    for (const request of ["r1", "r2"]) await admitStream(lab, request, 60_000);
    const [first, second] = await take(lab.queue);
    if (!first || !second) throw new Error("two should be ready");
    await lab.redis.config("SET", "maxmemory", "1");

    const address = { lane: lab.lane, request: "r2" };
    expect(await attend(lab.redis, address, 60_000)).toBe("attended");
    expect(await takeOver(queue, [first, second], "a")).toEqual(["together", "together"]);
    const open = { entry: second.entry, request: "r2", first: 0, records: [record(0)], final: false };
    const last = { entry: first.entry, request: "r1", first: 0, records: [finalRecord(0)], final: true };
    expect(await appendTokens(queue, [open, last])).toEqual(["appended", "appended"]);
    expect(await commit(queue, [result(first, { action: "keep" })], undefined)).toEqual(["committed"]);
    expect(await detach(lab.redis, address)).toBe("background");
    const ending = { code: "cancelled", message: "", ttlMs: 1_000, stream: true } as const;
    expect(await cancelRequest(lab.redis, address, ending)).toMatchObject({ said: "given" });
  });

  it("lets a worker that starts read what was admitted, whether or not the lane has its group", async () => {
    const { ready } = laneKeys(lab.lane);
    const created = async () =>
      Number(/cmdstat_xgroup\|create:calls=(\d+)/.exec(await lab.redis.info("commandstats"))?.[1]);
    await admitRequest(lab, "r1");
    await takeOne(lab.other);
    await admitRequest(lab, "r2");
    await lab.redis.config("SET", "maxmemory", "1");

    const before = await created();
    await ensureGroup(lab.redis, lab.lane);
    expect(await created()).toBe(before);
    expect(await readOwned(lab.queue, 10)).toEqual({ deliveries: [], unreadable: [] });
    expect(await abandon(lab.other)).toBe(1);
    expect((await reclaim(lab.queue, IDLE_MS, 10, "0-0")).deliveries).toHaveLength(1);
    expect(await reapConsumers(lab.queue, -1)).toBe(1);
    expect(await take(lab.queue)).toMatchObject([{ request: "r2" }]);

    await lab.redis.xgroup("DESTROY", ready, GROUP);
    await Promise.all([ensureGroup(lab.redis, lab.lane), ensureGroup(lab.redis, lab.lane)]);
    expect(await take(lab.queue)).toMatchObject([{ request: "r1" }, { request: "r2" }]);
    await lab.redis.del(ready);
    await ensureGroup(lab.redis, lab.lane);
    expect(await take(lab.queue)).toEqual([]);
  });

  it("refuses a request without trying again", async () => {
    const door = {
      redis: lab.redis,
      gatherer: new Gatherer(lab.redis, { gateway: "gw", limits: LIMITS }),
      shards: 1,
      secret: () => Buffer.from("of the lab"),
      idempotencyTtlMs: 60_000,
    };
    const entering = (request: string) =>
      enter(door, {
        request: {
          model: servedModel(lab.lane.model),
          tenant: "default",
          sequence: undefined,
          idempotencyKey: undefined,
          deadlineMs: 60_000,
        },
        address: { lane: lab.lane, request },
        frame: Buffer.from("frame"),
        outcomeTtlMs: 60_000,
        attendedMs: 0,
      });
    const refusals = async () => Number(/errorstat_OOM:count=(\d+)/.exec(await lab.redis.info("errorstats"))?.[1] ?? 0);
    await lab.redis.config("SET", "maxmemory", "1");
    const before = await refusals();
    await expect(entering("r1")).rejects.toMatchObject({ code: "unavailable" });
    expect((await refusals()) - before).toBe(1);
    await lab.redis.config("SET", "maxmemory", "0");
    expect(await entering("r1")).toEqual({ said: "admitted", repeated: false });
  });

  it("goes on mending what somebody deleted from outside", { timeout: 30_000 }, async () => {
    await admitRequest(lab, "r1");
    const lost = await takeOne(lab.queue);
    await lab.redis.xgroup("DELCONSUMER", laneKeys(lab.lane).ready, GROUP, lab.queue.consumer);
    await lab.redis.config("SET", "maxmemory", "1");
    const stop = new AbortController();
    const reconciling = reconcileWhileOpen(lab.queue, pino({ level: "silent" }), stop.signal);
    try {
      const entries = async () => (await lab.redis.xrange(laneKeys(lab.lane).ready, "-", "+")).map(([id]) => id);
      await expect.poll(entries, { timeout: 15_000 }).not.toContain(lost.entry);
      expect(await takeOne(lab.other)).toMatchObject({ request: "r1" });
    } finally {
      stop.abort();
      await reconciling;
    }
  });
});
