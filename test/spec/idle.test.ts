import { describe, expect, it } from "vitest";
import { sequenceIn } from "../support/queue/of-model.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { ask, step } from "./ask.js";
import { changeFacts, factsOf } from "../support/queue/facts.js";

describe("an idle sequence", () => {
  const served = useFleet({ workers: 2, models: ["chain"] });

  it("is gone when its time is up, state and all: START is wanted again", async () => {
    await ask(served.url, "chain", step(1, 1, { start: true }));
    const { redis } = served;
    const { name, live, lane, state } = await sequenceIn(redis, "chain", "u1");
    const [seconds] = await redis.time();
    const lapses = (await factsOf(redis, lane, name))?.lapses ?? 0;
    expect(lapses - Number(seconds) * 1_000).toBeGreaterThan(50_000);
    // The sequence is overdue at once. A worker that looks into the lane removes it.
    await changeFacts(redis, lane, name, { lapses: 1 });
    await redis.zadd(live, 1, name);
    await expect.poll(() => redis.exists(state)).toBe(0);
    expect(await factsOf(redis, lane, name)).toBeUndefined();
    expect(await redis.zscore(live, name)).toBeNull();
    expect(await ask(served.url, "chain", step(1, 2))).toMatchObject({ status: 400, code: "sequence_start_required" });
  });

  it("fails loudly when its checkpoint alone is gone, and never goes on from zero", async () => {
    await ask(served.url, "chain", step(2, 1, { start: true }));
    const { redis } = served;
    await redis.del((await sequenceIn(redis, "chain", "u2")).state);
    // The worker that made the state still has it in memory; the other worker must refuse. The
    // answer of either worker is never wrong.
    const reference = [
      await ask(served.url, "chain", step(3, 1, { start: true })),
      await ask(served.url, "chain", step(3, 2)),
    ];
    const answer = await ask(served.url, "chain", step(2, 2));
    if (answer.status === 200) expect(answer.outputs).toEqual(reference[1]?.outputs);
    else expect(answer).toMatchObject({ status: 500, code: "state_lost" });
  });

  it("is refused when its checkpoint was spoiled, by a worker that never saw it", async () => {
    await ask(served.url, "chain", step(4, 1, { start: true }));
    const { redis } = served;
    const { state } = await sequenceIn(redis, "chain", "u4");
    const frame = await redis.getBuffer(state);
    if (frame === null) throw new Error("no checkpoint");
    frame.writeUInt8(frame.readUInt8(frame.length - 1) ^ 1, frame.length - 1);
    await redis.set(state, frame, "KEEPTTL");
    await Promise.all(served.fleet.workers.map((worker) => worker.restart()));
    expect(await ask(served.url, "chain", step(4, 2))).toMatchObject({ status: 500, code: "state_corrupt" });
    expect(await ask(served.url, "chain", step(4, 3))).toMatchObject({ status: 400, code: "sequence_start_required" });
  });
});
