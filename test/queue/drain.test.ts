import { describe, expect, it } from "vitest";
import { encodeFrame } from "#shared/frame.js";
import { laneKeys } from "#shared/queue/keys.js";
import { Reader } from "../../worker/lane/reader.js";
import { Exclusive } from "../../worker/lane/exclusive.js";
import { TensorWork } from "../../worker/tensors/loop.js";
import { RedisClocks } from "#shared/redis/clock.js";
import { connectBlockingReader } from "#shared/redis/connect.js";
import { registryKeys } from "#shared/queue/keys.js";
import { unbatched } from "../../worker/lane/holdings.js";
import { laneContext, RunningLane, type LaneWork } from "../../worker/lane/lane.js";
import type { RunResult } from "../../worker/tensors/host.js";
import type { ServingModel } from "../../worker/tensors/serving.js";
import { admit, applicant, LIMITS, steady, streaming, type Lab, useLab } from "../support/queue/lab.js";
import { LabMember } from "../support/queue/member.js";
import { silentBus, silentLog } from "../support/silent.js";

/** A stateless model whose runs last until the test ends them. */
function slowModel(maxBatchSize = 4) {
  const begun: (() => void)[] = [];
  const model: ServingModel = {
    name: "m",
    version: "1",
    batching: { batched: true, shared: new Set() },
    layouts: { inputs: new Map(), outputs: new Map() },
    constants: [],
    limits: { maxBatchSize, maxDelayMs: 0, preferred: [] },
    controls: [],
    states: [],
    maxIdleMs: undefined,
    history: 1,
    host: {
      graph: { inputs: [], outputs: [] },
      run: () =>
        new Promise<RunResult>((resolve) => {
          begun.push(() => resolve({ outputs: [], ranMs: 1, letGo: () => undefined }));
        }),
      close: () => Promise.resolve(),
    },
  };
  return { model, begun };
}

async function open(lab: Lab, url: string, model: ServingModel) {
  const { queue } = lab;
  const { redis, consumer } = queue;
  const blocking = connectBlockingReader({ url, name: "reader", log: silentLog });
  const reader = new Reader({ redis: blocking, commands: redis, consumer, log: silentLog });
  const clocks = new RedisClocks(redis);
  await clocks.read();
  const context = laneContext({
    queue,
    bus: silentBus,
    replies: lab.repliesOf(),
    clocks,
    maxIdleMs: model.maxIdleMs,
    outageGuard: steady(),
    models: 1,
    living: () => 1,
    stateCacheBytes: 1_000,
    room: reader.room,
    log: silentLog,
  });
  const limits = { maxStateBytes: 1_000 };
  const work = new TensorWork(model, context, { exclusive: new Exclusive(), limits, maxRunsAlone: 3 });
  return new RunningLane(context, work, reader);
}

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
    const lane = await open(lab, lab.url, model);
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
    const lane = await open(lab, lab.url, model);
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
    const lane = await open(lab, lab.url, model);
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
    const lane = await open(lab, lab.url, model);
    await lab.admitStep({ request: "r1", start: true, body });
    await expect.poll(() => lab.redis.xlen(laneKeys(lab.lane).dead)).toBe(1);
    expect(begun).toEqual([]);
    await lane.drain();
  });
});
