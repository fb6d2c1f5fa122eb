import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sequenceKeys } from "#shared/keys.js";
import { startFleet, type Fleet } from "../setup/fleet.js";
import { ask, step } from "./ask.js";

const lane = { model: "chain", version: "1", shard: 0 };

describe("an idle sequence", () => {
  let fleet: Fleet;
  let url = "";
  beforeAll(async () => {
    fleet = await startFleet({ gateways: 1, workers: 2, models: ["chain"] });
    await fleet.whenServing();
    [url = ""] = fleet.urls;
  });
  afterAll(() => fleet.dispose());

  it("is gone when its time is up, state and all: START is wanted again", async () => {
    await ask(url, "chain", step(1, 1, { start: true }));
    const redis = fleet.redis.connect();
    const { seq, state } = sequenceKeys(lane, "default:u1");
    const [left, leftState] = [await redis.pttl(seq), await redis.pttl(state)];
    expect(left).toBeGreaterThan(50_000);
    expect(Math.abs(left - leftState)).toBeLessThan(1_000);
    // Redis's own expiry does the rest; here it comes at once.
    await redis.multi().pexpire(seq, 1).pexpire(state, 1).exec();
    while ((await redis.exists(seq, state)) > 0) await new Promise(setImmediate);
    redis.disconnect();
    expect(await ask(url, "chain", step(1, 2))).toMatchObject({ status: 400, code: "sequence_start_required" });
  });

  it("fails loudly when its checkpoint alone is gone, and never goes on from zero", async () => {
    await ask(url, "chain", step(2, 1, { start: true }));
    const redis = fleet.redis.connect();
    await redis.del(sequenceKeys(lane, "default:u2").state);
    redis.disconnect();
    // The worker that made the state still has it in memory; the other must refuse. Whoever takes the step, the answer is never a wrong one.
    const reference = [await ask(url, "chain", step(3, 1, { start: true })), await ask(url, "chain", step(3, 2))];
    const answer = await ask(url, "chain", step(2, 2));
    if (answer.status === 200) expect(answer.outputs).toEqual(reference[1]?.outputs);
    else expect(answer).toMatchObject({ status: 500, code: "state_lost" });
  });

  it("is refused when its checkpoint was spoiled, by a worker that never saw it", async () => {
    await ask(url, "chain", step(4, 1, { start: true }));
    const redis = fleet.redis.connect();
    const { state } = sequenceKeys(lane, "default:u4");
    const frame = await redis.getBuffer(state);
    if (frame === null) throw new Error("no checkpoint");
    frame.writeUInt8(frame.readUInt8(frame.length - 1) ^ 1, frame.length - 1);
    await redis.set(state, frame, "KEEPTTL");
    redis.disconnect();
    await Promise.all(fleet.workers.map((worker) => worker.restart()));
    expect(await ask(url, "chain", step(4, 2))).toMatchObject({ status: 500, code: "state_corrupt" });
    expect(await ask(url, "chain", step(4, 3))).toMatchObject({ status: 400, code: "sequence_start_required" });
  });
});
