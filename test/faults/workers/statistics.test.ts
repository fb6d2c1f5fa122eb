/** Statistics while workers are killed and frozen: sums never fall, and nothing counts twice. */
import { describe, expect, it } from "vitest";
import { infer, step, successesOf, watchFalls } from "../../statistics/load.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";

const running = useFleet({ models: ["accumulate"], gateways: 2, workers: 2 });
/** Each has one step under way. */
const CLIENTS = 8;
const urlAt = (i: number) => running.fleet.urls[i % 2] ?? "";
const successes = (url: string) => successesOf(url, "accumulate");

/** Runs sequences of five steps until `isOver`. @returns the number of steps with an answer */
async function load(first: number, isOver: () => boolean): Promise<number> {
  let done = 0;
  const client = async (id: number) => {
    for (let sequence = id; !isOver(); sequence += 100) {
      for (let n = 0; n < 5; n++) {
        const flags = { sequence_start: n === 0, sequence_end: n === 4 };
        if ((await infer(urlAt(id + n), "accumulate", step(sequence, flags))) === 200) done++;
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(first + i)));
  return done;
}

async function during(first: number, act: () => Promise<void>): Promise<number> {
  let isOver = false;
  const acting = act().finally(() => (isOver = true));
  const [done, fallen] = await Promise.all([
    load(first, () => isOver),
    watchFalls(running.fleet.urls, "accumulate", () => isOver),
    acting,
  ]);
  expect(fallen).toBeUndefined();
  return done;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe("statistics", () => {
  let known = 0;

  it("never fall when a worker is killed, and lack no more than its last beats had", async () => {
    const [worker] = running.fleet.workers;
    known += await during(1, async () => {
      await pause(2_000);
      expect(await successes(running.url)).toBeGreaterThan(0);
      await worker?.kill();
      await pause(4_000);
      await worker?.start();
      await pause(1_000);
    });
    const before = await successes(running.url);
    await pause(2_000);
    const after = await successes(running.url);
    // A client may not have heard of a step that counted.
    expect(after).toBeLessThanOrEqual(known + 40);
    expect(after).toBeGreaterThan(known / 2);
    expect(after).toBeGreaterThanOrEqual(before);
    known = after;
  });

  it("count a worker once that was taken for dead and came back", async () => {
    const [, worker] = running.fleet.workers;
    const before = known;
    const done = await during(10_001, async () => {
      await pause(1_000);
      worker?.freeze();
      await pause(3_000);
      worker?.thaw();
      await pause(2_000);
    });
    // A commit whose answer a dropped connection lost counts nowhere, and each client has one step
    // under way. No report counts twice.
    await until(async () => (await successes(running.url)) >= before + done - CLIENTS, 5_000);
    await pause(2_500);
    const counts = [await successes(urlAt(0)), await successes(urlAt(1))];
    expect(Math.max(...counts)).toBeLessThanOrEqual(before + done + CLIENTS);
    expect(Math.min(...counts)).toBe(Math.max(...counts));
  });
});
