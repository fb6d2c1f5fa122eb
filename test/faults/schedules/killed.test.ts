/**
 * Schedules whose gateways, workers, jobs processes and redis-server are killed, and whose keys of
 * BullMQ are deleted: each time makes one job at most, each job has one effect, and the schedules
 * continue.
 */
import { expect, it } from "vitest";
import { nth, pause, repeatedly } from "../pace.js";
import { ask, ended, type Body } from "../../jobs/ask.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { askFor, find, jobsOf, made } from "../../schedules/ask.js";

const served = useFleet({ gateways: 2, workers: 2, jobs: 2, models: ["accumulate"], env: { BATON_BUCKETS: "4" } });

const SCHEDULES = process.env["BATON_FULL"] === undefined ? 2 : 20;
const ROUNDS = process.env["BATON_FULL"] === undefined ? 1 : 10;

const step = (sequence: number, input: number, start: boolean) => ({
  parameters: { sequence_id: sequence, sequence_start: start },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [input] }],
});

/** Asks one gateway after the other until a gateway answers. */
async function persist<T>(work: (url: string) => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + 60_000;
  for (let i = 0; ; i++) {
    try {
      return await work(nth(served.fleet.urls, i));
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
      await pause(50);
    }
  }
}

async function deleteQueue(): Promise<void> {
  const keys = await served.redis.keys("{jobs}:schedules:*");
  if (keys.length > 0) await served.redis.del(...keys);
}

it("make one job for each time, whatever dies", { timeout: 600_000 }, async () => {
  const { gateways, workers, jobs, redis: server } = served.fleet;
  const sequences = Array.from({ length: SCHEDULES }, (_, i) => i + 1);
  for (const sequence of sequences) {
    const begun = await ask(`${served.url}/v2/models/accumulate/infer`, { body: step(sequence, 0, true) });
    expect(begun.status).toBe(200);
  }
  // Each run adds one to its sequence.
  const ids = await Promise.all(
    sequences.map(async (sequence) => {
      const { id } = await made(served.url, "accumulate", { every: 1_000, job: { infer: step(sequence, 1, false) } });
      return id;
    }),
  );
  const runsOf = (id: string) => persist(async (url) => (await find(url, id)).runs);
  const goOn = async () => {
    const before = await Promise.all(ids.map(runsOf));
    for (const [i, id] of ids.entries()) {
      await expect.poll(() => runsOf(id), { timeout: 60_000 }).toBeGreaterThan(before[i] ?? 0);
    }
  };
  await Promise.all([
    repeatedly(ROUNDS, 900, (i) => nth(gateways, i).member.restart()),
    repeatedly(ROUNDS, 1_100, (i) => nth(workers, i).restart()),
    repeatedly(2 * ROUNDS, 700, (i) => nth(jobs, i).restart()),
    repeatedly(ROUNDS, 1_300, async () => {
      await server.kill();
      await server.restart();
    }),
    repeatedly(ROUNDS, 1_000, () => deleteQueue().catch(() => undefined)),
  ]);
  // Kills all jobs processes at once in the middle of their work, and deletes all keys of BullMQ.
  await Promise.all(jobs.map((one) => one.kill()));
  await deleteQueue();
  await pause(2_500);
  await Promise.all(jobs.map((one) => one.start()));
  await goOn();

  for (const id of ids) {
    await persist((url) => askFor(url, `/schedules/${id}/pause`, { method: "POST" }));
    const { last_run_at: last } = await persist((url) => find(url, id));
    const all = await persist((url) => jobsOf(url, id));
    const ticks = all.map((one) => one.scheduled_for);
    expect(new Set(ticks).size, "each time makes one job").toBe(ticks.length);
    const ends: Body[] = [];
    for (const one of all) ends.push(await persist((url) => ended(url, one.id)));
    expect(ends.map(({ state }) => state)).toEqual(ends.map(() => "completed"));
    const sums = ends.map(({ result }) => result?.outputs?.[0]?.data[0]).toSorted((a, b) => Number(a) - Number(b));
    expect(sums, "each job has one effect").toEqual(ends.map((_, n) => n + 1));
    await expect.poll(() => runsOf(id), { timeout: 60_000 }).toBe(ticks.length);
    expect(ticks).toContain(last);
  }
});
