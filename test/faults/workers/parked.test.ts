/**
 * Faults while most steps are parked: a worker has two steps at once, so the ready stream holds a
 * few, and the other steps wait behind it.
 */
import { describe, it } from "vitest";
import { clusterStore } from "../../support/fleet/cluster-store.js";
import type { Fleet } from "../../support/fleet/fleet.js";
import type { Member } from "../../support/fleet/member.js";
import { ownConfig } from "../../support/fleet/repository.js";
import type { Store } from "../../support/fleet/store.js";
import { experiment } from "../../support/sequences/experiment.js";
import { until } from "../../support/until.js";
import { nth, pause, repeatedly } from "../pace.js";
import { scale, seed } from "../scale.js";
import { expectNoViolation } from "../verdict.js";

const inTwos = (ownConfig("chain") ?? "")
  .replace("max_batch_size: 64", "max_batch_size: 2")
  .replace(/max_candidate_sequences: \d+/, "max_candidate_sequences: 2");

/** How many steps are parked now. */
async function parkedNow({ store }: Fleet): Promise<number> {
  let count = 0;
  for (const server of await store.mastersNow()) {
    const redis = server.connect();
    for (const key of await redis.keys("parked:*")) count += await redis.hlen(key);
    redis.disconnect();
  }
  return count;
}

/** Freezes all workers until steps are parked, even on a quick machine. */
async function pileUp(fleet: Fleet): Promise<void> {
  for (const worker of fleet.workers) worker.freeze();
  await until(async () => (await parkedNow(fleet)) > 0, 60_000);
  for (const worker of fleet.workers) worker.thaw();
}

async function whileParked(name: string, breaking: (fleet: Fleet) => Promise<void>, store?: Store): Promise<void> {
  const findings = await experiment({
    seed,
    fleet: {
      gateways: 2,
      workers: 2,
      models: ["chain", "simple"],
      configs: { chain: inTwos },
      env: { BATON_BUCKETS: store === undefined ? "1" : "3" },
      ...(store === undefined ? {} : { store }),
    },
    sequences: scale.sequences / 2,
    steps: scale.steps / 2,
    models: ["chain"],
    clients: 32,
    spreadMs: 6_000,
    breaking: async (fleet) => {
      await pileUp(fleet);
      await breaking(fleet);
    },
  });
  expectNoViolation(name, findings);
}

/** Acts on all workers at a time, so that work piles up. */
async function all({ workers }: Fleet, act: (worker: Member) => Promise<unknown>): Promise<void> {
  await Promise.all(workers.map(act));
}

describe("while steps are parked", () => {
  it(
    "workers killed with SIGKILL lose and double nothing",
    () => whileParked("parked-worker", (fleet) => repeatedly(3, 500, () => all(fleet, (worker) => worker.restart()))),
    scale.timeoutMs,
  );

  it(
    "workers that leave hand back what they have not begun",
    () =>
      whileParked("parked-drain", (fleet) =>
        repeatedly(4, 500, async (i) => {
          await nth(fleet.workers, i).terminate();
          await nth(fleet.workers, i).start();
        }),
      ),
    scale.timeoutMs,
  );

  it(
    "redis-server killed with SIGKILL forgets none",
    () =>
      whileParked("parked-redis", ({ redis }) =>
        repeatedly(2, 1_500, async () => {
          await redis.kill();
          await pause(500);
          await redis.restart();
        }),
      ),
    scale.timeoutMs,
  );

  it(
    "workers of a Cluster killed with SIGKILL lose and double nothing",
    async () => {
      const store = await clusterStore();
      const restarting = (fleet: Fleet) => repeatedly(3, 500, () => all(fleet, (worker) => worker.restart()));
      await whileParked("parked-cluster", restarting, store);
    },
    scale.timeoutMs,
  );
});
