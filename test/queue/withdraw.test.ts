import { describe, expect, it } from "vitest";
import { GROUP, laneKeys } from "#shared/queue/keys.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { withdraw } from "#shared/queue/admission/withdraw.js";
import { requeue } from "#shared/queue/work/read/requeue.js";
import { release } from "#shared/queue/work/read/release.js";
import { useLab, type Lab } from "../support/queue/lab.js";

const cancelled = { code: "cancelled", message: "the request was cancelled", ttlMs: 60_000, stream: true } as const;
const cancel = (lab: Lab, request: string) => cancelRequest(lab.redis, lab.addressOf(request), cancelled);
const queued = ({ redis, lane }: Lab) => redis.xlen(laneKeys(lane).ready);

describe("withdraw", () => {
  const lab = useLab();

  it("takes what has ended out of the queue, and its neighbours stay", async () => {
    for (const request of ["r1", "r2", "r3"]) await lab.admitStream(request, 5_000);
    await cancel(lab, "r2");
    for (let i = 0; i < 2; i++) expect(await withdraw(lab.redis, lab.addressOf("r2"))).toBe("withdrawn");
    expect(await queued(lab)).toBe(2);
    expect((await lab.take()).map(({ request }) => request)).toEqual(["r1", "r3"]);
  });

  it("does the same before any worker has come", async () => {
    await lab.admitStream("r1");
    await lab.redis.xgroup("DESTROY", laneKeys(lab.lane).ready, GROUP);
    await cancel(lab, "r1");
    expect(await withdraw(lab.redis, lab.addressOf("r1"))).toBe("withdrawn");
    expect(await queued(lab)).toBe(0);
  });

  it("leaves what has not ended", async () => {
    await lab.admitStream("r1");
    expect(await withdraw(lab.redis, lab.addressOf("r1"))).toBe("left");
    expect(await withdraw(lab.redis, lab.addressOf("unknown"))).toBe("left");
    expect(await queued(lab)).toBe(1);
  });

  it("leaves what a worker has to that worker", async () => {
    await lab.admitStream("r1");
    await lab.takeOne();
    await cancel(lab, "r1");
    expect(await withdraw(lab.redis, lab.addressOf("r1"))).toBe("held");
    expect(await queued(lab)).toBe(1);
  });

  it("knows where a request stands that a worker has handed back, or that was queued anew", async () => {
    for (const request of ["r1", "r2"]) await lab.admitStream(request, 5_000);
    const [first, second] = await lab.take();
    if (first === undefined || second === undefined) throw new Error("two should be there");
    await release(lab.queue, [first]);
    await lab.redis.xack(laneKeys(lab.lane).ready, GROUP, second.entry);
    await requeue(lab.queue, [second]);
    for (const request of ["r1", "r2"]) {
      await cancel(lab, request);
      expect(await withdraw(lab.redis, lab.addressOf(request))).toBe("withdrawn");
    }
    expect(await queued(lab)).toBe(0);
  });

  it("leaves a step of a sequence, which others may wait for", async () => {
    await lab.admitStep({ request: "r1", start: true, attendedMs: 5_000 });
    await cancel(lab, "r1");
    expect(await withdraw(lab.redis, lab.addressOf("r1"))).toBe("left");
    expect(await queued(lab)).toBe(1);
  });
});
