/** A model with several instances runs a batch on each of them at once, in one worker. */
import { describe, expect, it } from "vitest";
import { encodeFrame } from "#shared/frame.js";
import { useLab } from "../support/queue/lab.js";
import { openTensorLane, slowModel } from "../support/queue/tensor-lane.js";

const body = encodeFrame({ outputs: [] }, []).toString("latin1");

describe("a model with two instances", () => {
  const lab = useLab();
  const outcome = async (request: string) => (await lab.outcomeFields(request))["kind"];

  it("runs two batches at once, and stages one more behind each", async () => {
    const { model, begun, instances } = slowModel(1, 2);
    const lane = await openTensorLane(lab, model);
    for (const request of ["a", "b", "c", "d"]) await lab.admitRequest(request, "", 100, body);
    await expect.poll(() => instances).toEqual([0, 1, 0, 1]);
    // Nothing has ended yet.
    expect(await Promise.all(["a", "b", "c", "d"].map(outcome))).toEqual(Array(4).fill(undefined));
    begun[1]?.();
    await expect.poll(() => outcome("b")).toBe("result");
    expect(await outcome("a")).toBeUndefined();
    for (const end of begun) end();
    await lane.drain();
  });

  it("gives a staged batch to the instance that is free first", async () => {
    const { model, begun, instances } = slowModel(1, 2);
    const lane = await openTensorLane(lab, model);
    for (const request of ["e", "f", "g"]) await lab.admitRequest(request, "", 100, body);
    await expect.poll(() => instances).toEqual([0, 1, 0]);
    begun[1]?.();
    await expect.poll(() => instances).toEqual([0, 1, 0, 1]);
    begun[3]?.();
    await expect.poll(() => outcome("g")).toBe("result");
    expect(await outcome("e")).toBeUndefined();
    for (const end of begun) end();
    await lane.drain();
  });
});
