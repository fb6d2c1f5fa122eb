import { describe, expect, it } from "vitest";
import { storeOutcome } from "#shared/contract/outcome.js";
import type { Delivery } from "#shared/queue/entry.js";
import { settle } from "../../worker/lane/settle.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { encodeCheckpoint, nameRun } from "#shared/contract/checkpoint.js";
import { realWorld } from "#shared/world.js";
import { States } from "../../worker/sequence/states.js";
import { IDLE_MS, useLab, type Lab, type OneLane } from "../support/queue/lab.js";
import { silentBus } from "../support/silent.js";

function worker(lab: Lab, queue: OneLane) {
  const states = new States(queue, 1_000_000);
  return {
    /** Settles the step as if this worker's run had made this state. */
    settle(delivery: Delivery, state: string) {
      const tensor = { name: "s", datatype: "UINT8" as const, shape: [state.length], data: Buffer.from(state) };
      const checkpoint = encodeCheckpoint(nameRun(delivery.entry), [tensor]);
      const outcome = storeOutcome({ kind: "result", body: Buffer.from(state) });
      const put = { action: "put" as const, version: checkpoint.version, checkpoint: checkpoint.frame };
      const terms = { maxIdleMs: IDLE_MS, budgetMs: 1_000, patienceMs: 1_000, world: realWorld };
      return settle({ queue, bus: silentBus, replies: lab.repliesOf(), states, ...terms }, [
        { delivery, outcome, state: put, deadReason: undefined, checkpoint },
      ]);
    },
    async stateFor(delivery: Delivery) {
      const lookup = await states.lookUp([delivery])[0];
      return lookup?.kind === "found" ? lookup.tensors?.[0]?.data.toString() : lookup?.kind;
    },
  };
}

describe("a worker whose step was taken over", () => {
  const lab = useLab();

  it("continues from the state that was committed, not from the one that it made itself", async () => {
    const [zombie, other] = [worker(lab, lab.queue), worker(lab, lab.other)];
    await lab.admitStep({ request: "r1", start: true });
    await lab.admitStep({ request: "r2" });
    const first = await lab.takeOne();
    await takeFrom(lab.other, lab.queue.consumer, 10);
    expect(await other.settle(first, "committed")).toMatchObject({ committed: 1 });
    const refused = zombie.settle(first, "refused");
    const second = await lab.takeOne();
    expect(await zombie.stateFor(second)).toBe("committed");
    expect(await refused).toMatchObject({ already: 1 });
    expect(await zombie.stateFor(second)).toBe("committed");
  });

  it("looks nothing up in Redis for a state that it has committed itself", async () => {
    const one = worker(lab, lab.queue);
    await lab.admitStep({ request: "r1", start: true });
    await lab.admitStep({ request: "r2" });
    await one.settle(await lab.takeOne(), "mine");
    const second = await lab.takeOne();
    await lab.redis.del(await lab.redis.keys(`state:*:${lab.lane.model}:*`));
    expect(await one.stateFor(second)).toBe("mine");
  });
});
