import { describe, expect, it } from "vitest";
import { asksWith, beatEvery, comesWithin, followsAt, JITTER, silenceAfter } from "./pace.js";

const LEASE_MS = 1_000;

describe("the pace of a fleet", () => {
  it.each([1, 2, 16, 30, 100, 1_000, 10_000])("lets a beat be late by a third of a lease (%i workers)", (living) => {
    for (const leaseMs of [LEASE_MS, 100]) {
      expect(beatEvery(living, leaseMs) * (1 + JITTER) + leaseMs / 3).toBeLessThan(leaseMs);
    }
  });

  it("is the same for all small fleets, and slower in large ones and for one that is alone", () => {
    expect([LEASE_MS, 60 * LEASE_MS].map((leaseMs) => beatEvery(1, leaseMs))).toEqual([400, 400]);
    expect([2, 16, 30].map((living) => beatEvery(living, LEASE_MS))).toEqual([75, 75, 75]);
    expect(beatEvery(100, LEASE_MS)).toBe(250);
    expect(beatEvery(1_000, LEASE_MS)).toBe(600);
  });

  it("calls nobody silent before its next beat is due, and everybody after a lease", () => {
    for (const living of [1, 30, 100, 1_000]) {
      expect(silenceAfter(living, LEASE_MS)).toBeGreaterThan(beatEvery(living, LEASE_MS) * (1 + JITTER));
      expect(silenceAfter(living, LEASE_MS)).toBeLessThanOrEqual(LEASE_MS);
    }
    expect(silenceAfter(2, LEASE_MS)).toBe(162.5);
    expect(silenceAfter(1_000, LEASE_MS)).toBe(810);
  });

  it("has a few workers ask within an interval, however many there are, and each of them sometimes", () => {
    expect([1, 4, 8].map(asksWith)).toEqual([1, 1, 0.5]);
    expect(asksWith(1_000)).toBeLessThan(0.05);
    expect(asksWith(100_000)).toBeGreaterThan(0.01);
  });

  it("brings a worker to a grave well within what a lease leaves, and not all of them at once", () => {
    expect(comesWithin(2)).toBeLessThan(1);
    expect(comesWithin(1_000)).toBe(100);
    expect(followsAt(5_000, -Infinity, 1_000, 0.5)).toBe(5_050);
  });

  it("follows a flood of calls with a few beats a second", () => {
    let followedAt = -Infinity;
    let beats = 0;
    for (let now = 0; now < 1_000; now++) {
      if (now < followedAt) continue;
      followedAt = followsAt(now, followedAt, 64, 0);
      beats++;
    }
    expect(beats).toBe(6);
  });
});
