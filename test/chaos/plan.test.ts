import { describe, expect, it } from "vitest";
import { seededRandom } from "../setup/random.js";
import { doses, planFaults, type Fault } from "./plan.js";

const place = { durationMs: 45_000, workers: 4, gateways: 2, leaseMs: 1_000 };
const plan = (seed: number) => planFaults(doses.minimum, place, seededRandom(seed));

describe("planFaults", () => {
  it("draws the same plan from the same seed, and another from another", () => {
    expect(plan(5)).toEqual(plan(5));
    expect(plan(5)).not.toEqual(plan(6));
  });

  it("holds the whole minimum dose of the specification, in order of time", () => {
    const faults = plan(1);
    const count = (kind: Fault["kind"]) => faults.filter((fault) => fault.kind === kind).length;
    expect(count("workerKill")).toBeGreaterThanOrEqual(30);
    expect(count("workerFreeze")).toBeGreaterThanOrEqual(25);
    expect(count("redisReset")).toBeGreaterThanOrEqual(15);
    expect(count("lostReply")).toBeGreaterThanOrEqual(8);
    expect(count("natsReset")).toBeGreaterThanOrEqual(8);
    expect(count("redisKill")).toBe(3);
    expect(count("gatewayKill")).toBeGreaterThanOrEqual(1);
    expect(faults.map(({ at }) => at)).toEqual(faults.map(({ at }) => at).sort((a, b) => a - b));
  });

  it.each([1, 2, 3, 4, 5])("freezes past the lease, and never touches a worker that is down (seed %i)", (seed) => {
    const busyUntil = new Map<number, number>();
    for (const fault of plan(seed)) {
      if (fault.kind !== "workerKill" && fault.kind !== "workerFreeze") continue;
      expect(fault.at).toBeGreaterThanOrEqual(busyUntil.get(fault.worker) ?? 0);
      if (fault.kind === "workerFreeze") expect(fault.forMs).toBeGreaterThan(place.leaseMs);
      busyUntil.set(fault.worker, fault.at + (fault.kind === "workerFreeze" ? fault.forMs : 1_000));
    }
  });

  it("ends near the end of its duration", () => {
    expect(plan(1).at(-1)?.at).toBeLessThan(place.durationMs + 5_000);
  });
});
