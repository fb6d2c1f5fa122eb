import { afterEach, describe, expect, it } from "vitest";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { GROUP, laneKeys } from "#shared/queue/keys.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { AdmissionBatcher } from "../../gateway/admission/batcher.js";
import { enqueue } from "../../gateway/admission/enqueue.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { lanesByKey, readOwned } from "#shared/queue/work/stream.js";
import { announcementOf, servedModel } from "../fixtures/served-models.js";
import { attend, detach } from "#shared/queue/admission/attend.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import { heartbeat } from "#shared/queue/work/liveness/heartbeat.js";
import { reapConsumers } from "#shared/queue/reap-consumers.js";
import { appendTokens } from "#shared/queue/work/streams/append-tokens.js";
import { beginAlone } from "#shared/queue/work/read/begin-alone.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { release } from "#shared/queue/work/read/release.js";
import { announce } from "#shared/queue/work/liveness/announce.js";
import { takeBack } from "#shared/queue/work/liveness/take-back.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { takeOver } from "#shared/queue/work/streams/take-over.js";
import { IDLE_MS, LIMITS, finalRecord, put, record, result, streaming, useLab } from "../support/queue/lab.js";
import { whileReconciling } from "../support/queue/reconciling.js";

describe("with Redis out of memory", () => {
  const lab = useLab();
  afterEach(() => lab.redis.config("SET", "maxmemory", "0"));

  it("refuses new work and lets what was admitted be run, handed back, ended and committed", async () => {
    for (const request of ["r1", "r2"]) await lab.admitStep({ request, start: request === "r1" });
    await lab.admitRequest("r3");
    await lab.admitRequest("r4");
    const [step, plain, other] = await lab.take();
    if (!step || !plain || !other) throw new Error("three should be ready");
    await lab.redis.config("SET", "maxmemory", "1");

    await expect(lab.admitRequest("r5")).rejects.toThrow(/^OOM/);
    expect((await takeBack(lab.queue, [step.entry])).deliveries).toMatchObject([{ request: "r1" }]);
    expect((await takeFrom(lab.other, lab.queue.consumer, 10)).deliveries).toHaveLength(3);
    expect((await takeFrom(lab.queue, lab.other.consumer, 10)).deliveries).toHaveLength(3);
    expect(await beginAlone(lab.queue, step, 3, "run")).toBe("run");
    expect(await commit(lab.queue, [result(step, put("s1"))], IDLE_MS)).toEqual(["committed"]);
    expect(await commit(lab.queue, [result(await lab.takeOne(), put("s2"))], IDLE_MS)).toEqual(["committed"]);
    expect(await commit(lab.queue, [result(plain, { action: "drop" })], undefined)).toEqual(["committed"]);
    expect(await release(lab.queue, [other])).toBe(1);
    expect(await lab.giveError("r4", "{}")).toMatchObject({ said: "given" });
    expect(await lab.redis.xlen(laneKeys(lab.lane).ready)).toBe(1);
  });

  it("lets streams that were admitted go on, be taken over, attended, finished and cancelled", async () => {
    const queue = streaming(lab.queue);
    for (const request of ["r1", "r2"]) await lab.admitStream(request, 60_000);
    const [first, second] = await lab.take();
    if (!first || !second) throw new Error("two should be ready");
    await lab.redis.config("SET", "maxmemory", "1");

    const address = lab.addressOf("r2");
    expect(await attend(lab.redis, address, 60_000)).toBe("attended");
    expect(await takeOver(queue, [first, second], "a")).toEqual(["together", "together"]);
    const open = {
      lane: lab.lane,
      entry: second.entry,
      tenant: DEFAULT_TENANT,
      request: "r2",
      first: 0,
      records: [record(0)],
      final: false,
    };
    const last = {
      lane: lab.lane,
      entry: first.entry,
      tenant: DEFAULT_TENANT,
      request: "r1",
      first: 0,
      records: [finalRecord(0)],
      final: true,
    };
    expect(await appendTokens(queue, [open, last])).toEqual(["appended", "appended"]);
    expect(await commit(queue, [result(first, { action: "keep" })], undefined)).toEqual(["committed"]);
    expect(await detach(lab.redis, address)).toBe("background");
    const ending = { code: "cancelled", message: "", ttlMs: 1_000, stream: true } as const;
    expect(await cancelRequest(lab.redis, address, ending)).toMatchObject({ said: "given" });
  });

  it("lets a worker that starts read what was admitted, whether or not the lane has its group", async () => {
    const { ready } = laneKeys(lab.lane);
    await lab.admitRequest("r1");
    await lab.takeOne(lab.other);
    await lab.admitRequest("r2");
    await lab.redis.xgroup("CREATECONSUMER", laneKeys(lab.lane).ready, GROUP, "gone.1");
    await lab.redis.config("SET", "maxmemory", "1");

    expect(await readOwned(lab.redis, lab.queue.consumer, lanesByKey([lab.lane]), 10)).toEqual({
      deliveries: [],
      unreadable: [],
    });
    expect((await takeFrom(lab.queue, lab.other.consumer, 10)).deliveries).toHaveLength(1);
    expect(await reapConsumers(lab.redis, laneKeys(lab.lane).ready, GROUP, -1)).toBe(1);
    expect(await lab.take()).toMatchObject([{ request: "r2" }]);

    await lab.redis.xgroup("DESTROY", ready, GROUP);
    await Promise.all([createGroup(lab.redis, lab.lane), createGroup(lab.redis, lab.lane)]);
    expect(await lab.take()).toMatchObject([{ request: "r1" }, { request: "r2" }]);
    await lab.redis.del(ready);
    await createGroup(lab.redis, lab.lane);
    expect(await lab.take()).toEqual([]);
  });

  it("refuses a request without trying again", async () => {
    const queue = {
      redis: lab.redis,
      batcher: new AdmissionBatcher(lab.redis, { gateway: "gw", limits: LIMITS }),
      buckets: 1,
      models: { pinned: () => undefined, heir: () => undefined },
      secret: () => Buffer.from("of the lab"),
      idempotencyTtlMs: 60_000,
    };
    const entering = (request: string) =>
      enqueue(queue, {
        request: {
          model: servedModel(lab.lane.model),
          tenant: "default",
          sequence: undefined,
          idempotencyKey: undefined,
          deadlineMs: 60_000,
        },
        address: lab.addressOf(request),
        encode: () => Buffer.from("frame"),
        under: () => {
          throw new Error("it has one version");
        },
        outcomeTtlMs: 60_000,
        attendedMs: 0,
      });
    const refusals = async () => Number(/errorstat_OOM:count=(\d+)/.exec(await lab.redis.info("errorstats"))?.[1] ?? 0);
    await lab.redis.config("SET", "maxmemory", "1");
    const before = await refusals();
    await expect(entering("r1")).rejects.toMatchObject({ code: "unavailable" });
    expect((await refusals()) - before).toBe(1);
    await lab.redis.config("SET", "maxmemory", "0");
    expect(await entering("r1")).toEqual({ said: "admitted", version: "1" });
  });

  it("lets workers join, beat, leave and be declared dead", async () => {
    await lab.redis.config("SET", "maxmemory", "1");
    const worker = "full.1";
    const joining = { announcement: announcementOf([]), leaseMs: 1_000, connection: "server 1", lanes: [lab.lane] };
    await announce(lab.redis, { ...joining, announcement: { ...joining.announcement, worker } });
    const beat = { worker, leaseMs: 1_000, silentMs: 0, connection: "server 2" };
    expect(await heartbeat(lab.redis, beat)).toMatchObject({ said: "noted" });
    expect(await bury(lab.redis, worker, { why: "ended" }, [lab.lane])).toBe(true);
    expect(await heartbeat(lab.redis, beat)).toMatchObject({ said: "unknown" });
  });

  it("goes on mending what somebody deleted from outside", { timeout: 30_000 }, async () => {
    await lab.admitRequest("r1");
    const lost = await lab.takeOne();
    await lab.redis.xgroup("DELCONSUMER", laneKeys(lab.lane).ready, GROUP, lab.queue.consumer);
    await lab.redis.config("SET", "maxmemory", "1");
    await whileReconciling(lab.queue, undefined, async () => {
      const entries = async () => (await lab.redis.xrange(laneKeys(lab.lane).ready, "-", "+")).map(([id]) => id);
      await expect.poll(entries).not.toContain(lost.entry);
      expect(await lab.takeOne(lab.other)).toMatchObject({ request: "r1" });
    });
  });
});
