import { describe, expect, it } from "vitest";
import { seededRandom } from "../support/fleet/random.js";
import { doses, planFaults, type Fault } from "./plan.js";

const place = { durationMs: 45_000, workers: 4, gateways: 2, leaseMs: 1_000 };
const plan = (seed: number) => planFaults(doses.minimum, place, seededRandom(seed));

describe("planFaults", () => {
  it("draws the same plan from the same seed, and another plan from another seed", () => {
    expect(plan(5)).toEqual(plan(5));
    expect(plan(5)).not.toEqual(plan(6));
  });

  it("holds at least what `minimum` promises of each fault, in order of time", () => {
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

  it("rolls every worker once, in the middle, and breaks the same as without", () => {
    const rolled = planFaults(doses.minimum, { ...place, rolled: "restart" }, seededRandom(1));
    const rolls = rolled.flatMap((fault) => (fault.kind === "workerRoll" ? [fault] : []));
    expect(rolls).toHaveLength(place.workers);
    expect(new Set(rolls.map(({ worker }) => worker))).toEqual(new Set([0, 1, 2, 3]));
    for (const { at } of rolls) {
      expect(at).toBeGreaterThanOrEqual(place.durationMs / 3);
      expect(at).toBeLessThan((2 * place.durationMs) / 3);
    }
    expect(rolled.filter(({ kind }) => kind !== "workerRoll")).toEqual(plan(1));
  });

  it("adds second versions to a repository that workers poll once, in the middle", () => {
    const polled = planFaults(doses.minimum, { ...place, rolled: "poll" }, seededRandom(1));
    const { durationMs } = place;
    expect(polled.filter(({ kind }) => kind === "newVersion")).toEqual([
      { kind: "newVersion", at: Math.round(durationMs / 3) },
    ]);
    expect(polled.filter(({ kind }) => kind !== "newVersion")).toEqual(plan(1));
  });

  it("kills replicas only where there are some, as often as masters, and breaks the same as without", () => {
    const kills = (faults: readonly Fault[]) => faults.filter(({ kind }) => kind === "replicaKill");
    expect(kills(plan(1))).toEqual([]);
    const replicated = planFaults(doses.minimum, { ...place, replicas: 3 }, seededRandom(1));
    expect(kills(replicated)).toHaveLength(doses.minimum.redisKills);
    expect(replicated.filter(({ kind }) => kind !== "replicaKill")).toEqual(plan(1));
  });

  it("ends near the end of its duration", () => {
    expect(plan(1).at(-1)?.at).toBeLessThan(place.durationMs + 5_000);
  });
});
