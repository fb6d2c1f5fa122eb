/** One fleet for all tests of a file, started before the first and stopped after the last. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { startFleet, type Fleet, type FleetPlan } from "./fleet.js";

export interface RunningFleet {
  readonly fleet: Fleet;
  /** Where its first gateway listens. */
  readonly url: string;
  /** A connection past the lines. It is opened at its first use, and closed with the fleet. */
  readonly redis: Redis;
}

/** How long the start may take on a busy machine, from the brokers to models that are ready. */
const START_TIMEOUT_MS = 120_000;

export function useFleet(plan: FleetPlan): RunningFleet {
  let started: Fleet | undefined;
  let redis: Redis | undefined;
  const fleet = () => {
    if (started === undefined) throw new Error("the fleet has not been started");
    return started;
  };
  beforeAll(async () => {
    started = await startFleet(plan);
    await started.whenServing();
  }, START_TIMEOUT_MS);
  afterAll(async () => {
    redis?.disconnect();
    await started?.dispose();
  });
  return {
    get fleet() {
      return fleet();
    },
    get url() {
      const [first] = fleet().urls;
      if (first === undefined) throw new Error("the fleet has no gateway");
      return first;
    },
    get redis() {
      return (redis ??= fleet().redis.connect());
    },
  };
}
