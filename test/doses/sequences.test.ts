/**
 * Each step of a sequence takes effect once, in order, while workers are killed, frozen, drained
 * and poisoned, a gateway is killed, and Redis and NATS are killed and restarted.
 */
import { describe, expect, it } from "vitest";
import { nth, pause } from "../faults/pace.js";
import { seed } from "../faults/scale.js";
import { expectNoViolation } from "../faults/verdict.js";
import type { Fleet } from "../support/fleet/fleet.js";
import { experiment } from "../support/sequences/experiment.js";

/** One kill, and one freeze past the lease. */
const TAKEOVERS = 2;
/** The poison is a step that comes at a larger share of the load. */
const BEFORE_POISON = 0.25;
/**
 * Redis sends entries to a frozen worker with an open read within this time, far below its lease.
 */
const SENT_SOME_MS = 300;

describe("a fleet under sequences, a blow of each kind", () => {
  it("loses, doubles and reorders nothing", { timeout: 120_000 }, async () => {
    const findings = await experiment({
      seed,
      fleet: { gateways: 2, workers: 3, models: ["chain", "pill", "simple"] },
      sequences: 40,
      steps: 12,
      models: ["chain"],
      poison: 1,
      spreadMs: 8_000,
      breaking: async (fleet, pace) => {
        const [killed, frozen, drained] = [nth(fleet.workers, 0), nth(fleet.workers, 1), nth(fleet.workers, 2)];
        // The poison comes later, because a crashing worker could not be drained.
        pace.hold();
        pace.allow(BEFORE_POISON);
        await pause(SENT_SOME_MS);
        const { code } = await drained.terminate();
        await drained.start();
        pace.allow(1);

        // The dead worker held entries for certain, because Redis sent entries to the frozen
        // worker.
        killed.freeze();
        await pause(SENT_SOME_MS);
        await killed.kill();
        await takeovers(fleet, 1);
        await killed.start();

        frozen.freeze();
        await takeovers(fleet, TAKEOVERS);
        frozen.thaw();

        await nth(fleet.gateways, 0).member.restart();

        await fleet.nats.kill();
        await pause(500);
        await fleet.nats.restart();
        await fleet.redis.kill();
        await pause(300);
        await fleet.redis.restart();
        return code;
      },
    });
    expectNoViolation("dose", findings);
    expect(findings.broke).toBe(0);
    expect(findings.numbers.workerEvents["request set aside"]).toBe(1);
  });
});

/** Resolves when workers have logged this many takeovers of entries. */
async function takeovers({ workers }: Fleet, count: number): Promise<void> {
  const lines = () => workers.flatMap(({ lives }) => lives.flatMap(({ lines: all }) => all));
  const reclaimed = () => lines().filter(({ fields }) => fields["msg"] === "reclaimed").length;
  await expect.poll(reclaimed).toBeGreaterThanOrEqual(count);
}
