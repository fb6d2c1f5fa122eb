import { describe, expect, it } from "vitest";
import { storeOutcome } from "#shared/contract/outcome.js";
import { InferenceError } from "#shared/errors.js";
import type { Delivery } from "#shared/contract/entry.js";
import { settle } from "../../worker/batch/settle.js";
import type { LaneQueue } from "../../worker/queue/lane.js";
import { reclaim } from "../../worker/queue/reclaim.js";
import { encodeCheckpoint } from "../../worker/sequence/checkpoint.js";
import { States } from "../../worker/sequence/states.js";
import { IDLE_MS, admitStep, silentBus, takeOne, useLab } from "./lab.js";

function worker(queue: LaneQueue) {
  const states = new States(queue, 1_000_000, () => new InferenceError("state_lost", "gone"));
  return {
    /** As if this worker's run of the step had made this state. */
    settle(delivery: Delivery, state: string) {
      const tensor = { name: "s", datatype: "UINT8" as const, shape: [state.length], data: Buffer.from(state) };
      const checkpoint = encodeCheckpoint(delivery.entry, [tensor]);
      const outcome = storeOutcome({ kind: "result", body: Buffer.from(state) });
      const put = { action: "put" as const, checkpoint: checkpoint.frame };
      return settle({ queue, bus: silentBus, states, maxIdleMs: IDLE_MS, budgetMs: 1_000 }, [
        { delivery, outcome, state: put, deadReason: undefined, checkpoint },
      ]);
    },
    async stateFor(delivery: Delivery) {
      const lookup = await states.find([delivery])[0];
      return lookup?.kind === "found" ? lookup.tensors?.[0]?.data.toString() : lookup?.kind;
    },
  };
}

describe("a worker whose step was taken over", () => {
  const lab = useLab();

  it("continues from the state that was committed, not from the one that it made itself", async () => {
    const [zombie, other] = [worker(lab.queue), worker(lab.other)];
    await admitStep(lab, { request: "r1", start: true });
    await admitStep(lab, { request: "r2" });
    const first = await takeOne(lab.queue);
    await reclaim(lab.other, 0, 10, "0-0");
    expect(await other.settle(first, "committed")).toMatchObject({ committed: 1 });
    const refused = zombie.settle(first, "refused");
    const second = await takeOne(lab.queue);
    expect(await zombie.stateFor(second)).toBe("committed");
    expect(await refused).toMatchObject({ already: 1 });
    expect(await zombie.stateFor(second)).toBe("committed");
  });

  it("looks nothing up in Redis for a state that it has committed itself", async () => {
    const one = worker(lab.queue);
    await admitStep(lab, { request: "r1", start: true });
    await admitStep(lab, { request: "r2" });
    await one.settle(await takeOne(lab.queue), "mine");
    const second = await takeOne(lab.queue);
    await lab.redis.del(await lab.redis.keys(`state:{${lab.lane.model}:*`));
    expect(await one.stateFor(second)).toBe("mine");
  });
});
