import { describe, expect, it } from "vitest";
import { encodeFrame } from "#shared/frame.js";
import { laneKeys } from "#shared/queue/keys.js";
import { Reader } from "../../worker/lane/reader.js";
import { RedisClocks } from "#shared/redis/clock.js";
import { connectBlockingReader } from "#shared/redis/connect.js";
import { registryKeys } from "#shared/queue/keys.js";
import { unbatched } from "../../worker/lane/holdings.js";
import { laneContext, RunningLane, type LaneWork } from "../../worker/lane/lane.js";
import { admit, applicant, LIMITS, steady, streaming, useLab } from "../support/queue/lab.js";
import { LabMember } from "../support/queue/member.js";
import { openTensorLane, slowModel } from "../support/queue/tensor-lane.js";
import { silentBus, silentLog } from "../support/silent.js";

/** Streams that neither begin nor end: a lane keeps its requests until it drains. */
const still: LaneWork = {
  batching: unbatched,
  room: () => 8,
  suspectRoom: () => 0,
  accepts: () => true,
  run: (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
};

const body = encodeFrame({ outputs: [] }, []).toString("latin1");

describe("drain", () => {
  const lab = useLab();

  it("hands back what its last read brings while a batch still runs", async () => {
    const { model, begun } = slowModel();
    const lane = await openTensorLane(lab, model);
    await lab.admitRequest("running", "", 100, body);
    await expect.poll(() => begun.length).toBe(1);
    // The next read has begun to block.
    await expect.poll(() => lab.redis.client("LIST")).toMatch(/ flags=b /);
    const drained = lane.drain();
    await lab.admitRequest("late", "", 100, body);
    await expect.poll(async () => (await lab.take(lab.other)).map(({ request }) => request)).toEqual(["late"]);
    begun[0]?.();
    await drained;
    expect(await lab.take(lab.other)).toEqual([]);
  });

  it("hands back a batch that waits in the model's thread behind the batch that runs", async () => {
    const { model, begun } = slowModel(1);
    const lane = await openTensorLane(lab, model);
    for (const request of ["running", "staged", "waiting"]) await lab.admitRequest(request, "", 100, body);
    await expect.poll(() => begun.length).toBe(2);
    const drained = lane.drain();
    const back: string[] = [];
    await expect
      .poll(async () => {
        back.push(...(await lab.take(lab.other)).map(({ request }) => request));
        return back.toSorted();
      })
      .toEqual(["staged", "waiting"]);
    for (const end of begun) end();
    await drained;
    expect(await lab.take(lab.other)).toEqual([]);
  });

  it("lets a step expire that waits in the model's thread", async () => {
    const { model, begun } = slowModel(1);
    const lane = await openTensorLane(lab, model);
    await lab.admitRequest("running", "", 100, body);
    await expect.poll(() => begun.length).toBe(1);
    const brief = { ...applicant(lab.lane, "staged", body), deadlineMs: 300 };
    await admit(lab.redis, { gateway: "gw", limits: LIMITS }, [brief]);
    await expect.poll(() => begun.length).toBe(2);
    await expect.poll(async () => (await lab.outcomeFields("staged"))["kind"]).toBe("error");
    for (const end of begun) end();
    await lane.drain();
    expect((await lab.outcomeFields("running"))["kind"]).toBe("result");
  });

  it("leaves streams in their middle to others at once, and hands back what has not begun", async () => {
    const queue = streaming(lab.queue);
    const { redis, consumer } = queue;
    const blocking = connectBlockingReader({ url: lab.url, name: "reader", log: silentLog });
    const reader = new Reader({ redis: blocking, commands: redis, consumer, log: silentLog });
    const context = laneContext({
      queue,
      bus: silentBus,
      replies: lab.repliesOf(),
      clocks: new RedisClocks(redis),
      maxIdleMs: undefined,
      outageGuard: steady(),
      models: 1,
      living: () => 1,
      stateCacheBytes: 1_000,
      room: reader.room,
      log: silentLog,
    });
    const lane = new RunningLane(context, still, reader);
    for (const request of ["r1", "r2"]) await lab.admitRequest(request, "", 100, body);
    await expect.poll(() => lane.holdings.waiting.length).toBe(2);
    lane.holdings.take(lane.holdings.waiting.slice(0, 1));
    const other = await LabMember.join(lab, "b.1");
    try {
      await lane.drain();
      await expect.poll(() => other.reclaimed).toContain("r1");
      await expect.poll(() => lab.redis.zcard(registryKeys.graves)).toBe(0);
      await other.read();
      // The lane's last read may have brought back the entry that the lane had handed back.
      const { waiting, suspects } = other.holdings;
      expect([...waiting, ...suspects].map(({ delivery }) => delivery.request).sort()).toEqual(["r1", "r2"]);
    } finally {
      await other.dispose();
    }
  });

  it("sets a sequence's step aside that stands in the queue of a stateless model", async () => {
    const { model, begun } = slowModel();
    const lane = await openTensorLane(lab, model);
    await lab.admitStep({ request: "r1", start: true, body });
    await expect.poll(() => lab.redis.xlen(laneKeys(lab.lane).dead)).toBe(1);
    expect(begun).toEqual([]);
    await lane.drain();
  });
});
