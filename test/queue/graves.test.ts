import { describe, expect, it } from "vitest";
import { GROUP, laneKeys, registryKeys } from "#shared/queue/keys.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import { ownedByLane } from "#shared/queue/work/read/owned.js";
import { owners, strays } from "#shared/queue/work/liveness/strays.js";
import { takeBack } from "#shared/queue/work/liveness/take-back.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { LabMember } from "../support/queue/member.js";
import { useLab } from "../support/queue/lab.js";
import { whileReconciling } from "../support/queue/reconciling.js";

describe("takeFrom", () => {
  const lab = useLab();
  const dead = "a.1";

  it("takes what that worker owns and nothing else, a share at a time, and then removes its consumer", async () => {
    for (const request of ["r1", "r2", "r3"]) await lab.admitRequest(request);
    await lab.take();
    await lab.admitRequest("r4");
    await lab.take({ ...lab.queue, consumer: "c.1" });
    expect(await takeFrom(lab.other, dead, 2)).toMatchObject({
      said: "more",
      deliveries: [{ request: "r1" }, { request: "r2" }],
    });
    expect(await takeFrom(lab.other, dead, 2)).toMatchObject({ said: "empty", deliveries: [{ request: "r3" }] });
    // The next owner's worker dies, too.
    const again = await takeFrom(lab.queue, lab.other.consumer, 10);
    expect([...again.times]).toEqual(again.deliveries.map(({ entry }) => [entry, 3]));
    await takeFrom(lab.other, dead, 10);
    const left = (await lab.redis.xinfo("CONSUMERS", laneKeys(lab.lane).ready, GROUP)) as string[][];
    expect(left.map((info) => info[1])).toEqual(["b.1", "c.1"]);
    expect(await takeFrom(lab.other, dead, 2)).toMatchObject({ said: "empty", deliveries: [] });
  });

  it("takes nothing when the call comes too late", async () => {
    await lab.admitRequest("r1");
    await lab.take();
    expect(await takeFrom(lab.other, dead, 2, 1)).toMatchObject({ said: "late", deliveries: [] });
    expect(await ownedByLane(lab.redis, dead, [lab.lane])).toMatchObject([{ lane: lab.lane, entries: 1 }]);
  });

  it("names entries that were deleted from outside", async () => {
    await lab.admitRequest("r1");
    await lab.admitRequest("r2");
    const [first] = await lab.take();
    await lab.redis.xdel(laneKeys(lab.lane).ready, first?.entry ?? "");
    expect(await takeFrom(lab.other, dead, 10)).toMatchObject({
      said: "empty",
      deleted: [first?.entry],
      deliveries: [{ request: "r2" }],
    });
  });

  it("finds nothing where the lane's stream is gone", async () => {
    await lab.redis.del(laneKeys(lab.lane).ready);
    expect(await takeFrom(lab.other, dead, 10)).toMatchObject({ said: "empty", deliveries: [] });
    expect(await ownedByLane(lab.redis, dead, [lab.lane])).toEqual([]);
    expect(await takeBack(lab.other, ["1-1"])).toEqual({ deliveries: [], unreadable: [] });
  });
});

describe("takeBack", () => {
  const lab = useLab();

  it("gives what the worker still owns, not what is another's or ended", async () => {
    for (const request of ["r1", "r2"]) await lab.admitRequest(request);
    const own = await lab.take();
    await lab.admitRequest("r3");
    const theirs = await lab.takeOne(lab.other);
    await lab.redis.xack(laneKeys(lab.lane).ready, GROUP, own[0]?.entry ?? "");
    const asked = [...own, theirs].map(({ entry }) => entry);
    expect((await takeBack(lab.queue, asked)).deliveries).toMatchObject([{ request: "r2" }]);
    expect(await owners(lab.queue)).toEqual(["a.1", "b.1"]);
  });
});

describe("strays", () => {
  const lab = useLab();

  it("are workers with entries that neither live nor have a grave there", async () => {
    expect(await strays(lab.queue, await owners(lab.queue))).toEqual([]);
    await lab.admitRequest("r1");
    await lab.take();
    await lab.admitRequest("r2");
    await lab.take(lab.other);
    expect(await strays(lab.queue, await owners(lab.queue))).toEqual(["a.1", "b.1"]);
    await lab.redis.zadd(registryKeys.workers, 1, "a.1");
    await bury(lab.redis, "b.1", { why: "stray" }, [{ ...lab.lane, bucket: 7 }]);
    expect(await strays(lab.queue, await owners(lab.queue))).toEqual(["b.1"]);
    await bury(lab.redis, "b.1", { why: "stray" }, [lab.lane]);
    expect(await strays(lab.queue, await owners(lab.queue))).toEqual([]);
  });

  it("are found by a round of the lane's reconciler, and what they have goes to the living", async () => {
    await lab.admitRequest("r1");
    await lab.take();
    const member = await LabMember.join(lab, "c.1");
    const { queue } = member;
    await whileReconciling(queue, undefined, async () => {
      await expect.poll(() => member.reclaimed).toEqual(["r1"]);
      await expect.poll(() => owners(queue)).toEqual(["c.1"]);
    });
    await member.dispose();
  });
});
