import { describe, expect, it } from "vitest";
import { servedModel } from "../../../test/fixtures/served-models.js";
import { jobLevel, keepsOrder } from "./queue-policy.js";

const levels = (count: number) => ({
  ...servedModel("m"),
  config: { dynamic_batching: { priority_levels: String(count), default_priority_level: "1" } },
});
const all = Array.from({ length: 9 }, (_, i) => i + 1);

describe("the priority of a job", () => {
  it("is a level of its own where the model has no levels, or one", () => {
    expect(all.map((priority) => jobLevel(priority, servedModel("m")))).toEqual(all);
    expect(all.map((priority) => jobLevel(priority, levels(1)))).toEqual(all);
  });

  it("is spread over the levels of the model", () => {
    expect(all.map((priority) => jobLevel(priority, levels(2)))).toEqual([1, 1, 1, 1, 2, 2, 2, 2, 2]);
    expect(all.map((priority) => jobLevel(priority, levels(3)))).toEqual([1, 1, 1, 2, 2, 2, 3, 3, 3]);
    expect(all.map((priority) => jobLevel(priority, levels(18)))).toEqual(all.map((priority) => 2 * priority));
  });
});

describe("the order of answers", () => {
  it.each([
    [{}, false],
    [{ dynamic_batching: { preserve_ordering: false } }, false],
    [{ dynamic_batching: { preserve_ordering: true } }, true],
    [{ sequence_batching: { direct: {} } }, false],
    [{ sequence_batching: { oldest: { preserve_ordering: true } } }, true],
  ])("with %j is kept: %j", (config, keeps) => {
    expect(keepsOrder({ ...servedModel("m"), config })).toBe(keeps);
  });
});
