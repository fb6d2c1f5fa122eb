import { describe, expect, it } from "vitest";
import { logKey, outcomeKey } from "#shared/queue/keys.js";
import { beginAlone } from "#shared/queue/work/read/begin-alone.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { takeOver } from "#shared/queue/work/streams/take-over.js";
import { record, streaming, useLab, type Lab } from "../support/queue/lab.js";

async function begin(lab: Lab) {
  await lab.admitStream("r1");
  const delivery = await lab.takeOne();
  return {
    delivery,
    takenOver: async (name: string) => (await takeOver(streaming(lab.queue), [delivery], name))[0],
    /** Appends a record, as another worker might. */
    grow: () => lab.redis.rpush(logKey(lab.addressOf("r1")), record(0)),
  };
}

describe("takeOver", () => {
  const lab = useLab();

  it("lets a stream go on beside others as long as it makes progress", async () => {
    const { takenOver, grow } = await begin(lab);
    for (const name of ["a", "b", "c", "d"]) {
      await grow();
      expect(await takenOver(name)).toBe("together");
    }
  });

  it("lets a stream that has not begun go on beside others once, then runs it alone", async () => {
    const { takenOver } = await begin(lab);
    expect(await takenOver("a")).toBe("together");
    expect(await takenOver("b")).toBe("alone");
    expect(await takenOver("c")).toBe("alone");
  });

  it("runs a stream alone that stays where it is twice in a row, until it moves", async () => {
    const { takenOver, grow } = await begin(lab);
    await grow();
    expect(await takenOver("a")).toBe("together");
    expect(await takenOver("b")).toBe("together");
    expect(await takenOver("c")).toBe("alone");
    await grow();
    expect(await takenOver("d")).toBe("together");
    expect(await takenOver("e")).toBe("together");
    expect(await takenOver("f")).toBe("alone");
  });

  it("counts a takeover once, however often it is announced", async () => {
    const { takenOver, grow } = await begin(lab);
    for (let i = 0; i < 3; i++) expect(await takenOver("a")).toBe("together");
    expect(await takenOver("b")).toBe("alone");
    await grow();
    expect(await takenOver("b")).toBe("alone");
    expect(await takenOver("c")).toBe("together");
  });

  it("forgets the runs alone of a stream that has moved since", async () => {
    const { delivery, takenOver, grow } = await begin(lab);
    const alone = (run: string) => beginAlone(lab.queue, delivery, 1, run);
    expect(await alone("first")).toBe("run");
    expect(await alone("second")).toBe("poison");
    await grow();
    expect(await takenOver("a")).toBe("together");
    expect(await alone("third")).toBe("run");
  });

  it("takes names with spaces for what they are", async () => {
    const { takenOver } = await begin(lab);
    expect(await takenOver("a 1")).toBe("together");
    expect(await takenOver("a 1")).toBe("together");
    expect(await takenOver("a 2")).toBe("alone");
  });

  it("is refused to a worker that lost the entry", async () => {
    const { delivery, takenOver } = await begin(lab);
    await takeFrom(lab.other, lab.queue.consumer, 10);
    expect(await takenOver("a")).toBe("lost");
    expect(await takeOver(streaming(lab.other), [delivery], "b")).toEqual(["together"]);
  });

  it("says which have ended, with an outcome or without a record", async () => {
    for (const request of ["r1", "r2", "r3"]) await lab.admitStream(request);
    const deliveries = await lab.take();
    await lab.giveError("r1", "{}");
    await lab.redis.unlink(outcomeKey(lab.addressOf("r2")));
    expect(await takeOver(streaming(lab.queue), deliveries, "a")).toEqual(["ended", "ended", "together"]);
    expect(await lab.redis.exists(outcomeKey(lab.addressOf("r2")))).toBe(0);
    expect(await takeOver(streaming(lab.queue), [], "a")).toEqual([]);
  });
});
