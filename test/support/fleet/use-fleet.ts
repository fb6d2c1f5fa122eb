/** One fleet for all tests of a file, from before the first test until after the last. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { startFleet, type Fleet, type FleetPlan } from "./fleet.js";

export interface RunningFleet {
  readonly fleet: Fleet;
  /** URL of the fleet's first gateway. */
  readonly url: string;
  /** A connection past the lines, which opens at its first use and closes with the fleet. */
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
