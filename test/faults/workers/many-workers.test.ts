/**
 * A fleet of many workers that come and go all the time: workers are killed or have to end, and
 * each comes back. The whole dose takes about 10 GB of memory, for 64 workers with a supervisor
 * each.
 */
import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Fleet } from "../../support/fleet/fleet.js";
import type { Member } from "../../support/fleet/member.js";
import { seededRandom, type Random } from "../../support/fleet/random.js";
import { experiment } from "../../support/sequences/experiment.js";
import type { Pace } from "../../support/sequences/pace.js";
import { until } from "../../support/until.js";
import { manyWorkersScale as scale, seed } from "../scale.js";
import { expectNoViolation } from "../verdict.js";

/** How long a worker is away at most, in ms. */
const AWAY_MS = 2_000;

it(
  "of many workers that come and go, nothing is lost, doubled or reordered",
  { timeout: scale.timeoutMs },
  async () => {
    const random = seededRandom(seed).fork("come and go");
    const findings = await experiment({
      seed,
      fleet: { gateways: 2, workers: scale.workers, models: ["chain", "simple"], direct: true },
      sequences: scale.sequences,
      steps: scale.steps,
      models: ["chain"],
      spreadMs: scale.durationMs,
      breaking: async (fleet, pace) => {
        pace.hold();
        await until(async () => (await workersSeen(fleet)) === scale.workers, scale.timeoutMs);
        return comeAndGo(fleet, pace, random);
      },
    });
    expectNoViolation("many-workers", findings);
    const { killed, ended } = findings.broke;
    expect(killed).toBeGreaterThan(0);
    expect(ended.length).toBeGreaterThan(0);
    expect(killed + ended.length).toBeGreaterThanOrEqual(scale.goings);
    expect(ended.filter((code) => code !== 0)).toEqual([]);
  },
);

async function workersSeen(fleet: Fleet): Promise<number> {
  const answer = await fetch(`${fleet.urls[0]}/v2/fleet`).catch(() => undefined);
  if (answer?.ok !== true) return 0;
  return ((await answer.json()) as { readonly workers: readonly unknown[] }).workers.length;
}

interface Gone {
  killed: number;
  /** The exit codes of the workers that had to end. */
  readonly ended: (number | null)[];
}

/** Several workers are away at a time. The load keeps to the pace of the returns. */
async function comeAndGo(fleet: Fleet, pace: Pace, random: Random): Promise<Gone> {
  const gone: Gone = { killed: 0, ended: [] };
  const resting = new Set<Member>(fleet.workers);
  const endAt = performance.now() + scale.durationMs;
  let back = 0;
  const share = () => {
    const time = 1 - (endAt - performance.now()) / scale.durationMs;
    return Math.min(time, back / scale.goings, 1);
  };
  const isOver = () => share() >= 1;
  const one = async (own: Random) => {
    while (!isOver()) {
      const worker = own.pick([...resting]);
      resting.delete(worker);
      if (own.chance(0.5)) {
        await worker.kill();
        gone.killed++;
      } else gone.ended.push((await worker.terminate(60_000)).code);
      await pause(own.between(0, AWAY_MS));
      await worker.start();
      resting.add(worker);
      back++;
      pace.allow(share());
    }
  };
  await Promise.all(Array.from({ length: scale.awayAtOnce }, (_, i) => one(random.fork(`hand ${i}`))));
  pace.allow(1);
  return gone;
}
