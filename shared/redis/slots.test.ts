import { describe, expect, it } from "vitest";
import { callGroups, slotOf } from "./slots.js";

describe("the slot of a key", () => {
  // The answers of CLUSTER KEYSLOT of Redis 7.0.
  it.each([
    ["123456789", 12_739],
    ["foo", 12_182],
    ["{registry}:workers", 3_850],
    ["{user1000}.following", 3_443],
    ["foo{}{bar}", 8_363],
    ["foo{{bar}}zap", 4_015],
    ["foo{bar}{zap}", 5_061],
    ["schlüssel", 7_677],
    ["", 0],
  ])("%s is %i", (key, slot) => {
    expect(slotOf(key)).toBe(slot);
  });
});

describe("the groups of items that one call can have", () => {
  const items = ["{a}1", "{b}1", "{a}2", "{b}2"];
  it("are the slots in a Cluster, in order", () => {
    expect(callGroups({ isCluster: true }, items, (key) => key)).toEqual([
      ["{a}1", "{a}2"],
      ["{b}1", "{b}2"],
    ]);
  });
  it("are one elsewhere, and none without items", () => {
    expect(callGroups({ isCluster: false }, items, (key) => key)).toEqual([items]);
    expect(callGroups({ isCluster: false }, [], String)).toEqual([]);
    expect(callGroups({ isCluster: true }, [], String)).toEqual([]);
  });
});
