/**
 * Ten workers are killed under load. Statistics never fall and never say more than the clients saw.
 * They lack at most what the killed workers committed since their last beats.
 */
import { describe, expect, it } from "vitest";
import { metricsOf, scrape } from "../../metrics/scrape.js";
import { infer, simple, step, successesOf, watchFalls } from "../../statistics/load.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { readUntil, until } from "../../support/until.js";
import { nth, pause } from "../pace.js";

const KILLS = 10;
/** Each has one request under way. */
const CLIENTS = 12;
const LEASE_MS = 1_000;
const models = ["accumulate", "simple"] as const;
type Model = (typeof models)[number];

const running = useFleet({ models, gateways: 2, workers: 4, env: { BATON_METRICS_PORT: "0" } });
const urlAt = (i: number) => nth(running.fleet.urls, i);

/** When clients got the results of a model, by the test's clock. */
const results: Record<Model, number[]> = { accumulate: [], simple: [] };

async function ask(gateway: number, model: Model, body: object): Promise<void> {
  expect(await infer(urlAt(gateway), model, body)).toBe(200);
  results[model].push(performance.now());
}

async function client(id: number, isOver: () => boolean): Promise<void> {
  for (let sequence = id; !isOver(); sequence += 100) {
    for (let n = 0; n < 5; n++) {
      const flags = { sequence_start: n === 0, sequence_end: n === 4 };
      await ask(id + n, "accumulate", step(sequence, flags));
    }
    await ask(id, "simple", simple);
  }
}

/** The processes of the workers below their supervisors, by the names of the supervisors. */
async function pids(): Promise<ReadonlyMap<string, number>> {
  const answer = await fetch(`${running.url}/v2/fleet`);
  const { workers } = (await answer.json()) as { readonly workers: readonly { name: string; pid: number }[] };
  return new Map(workers.map(({ name, pid }) => [name.split(".")[0] ?? "", pid]));
}

/** Kills a worker, whose supervisor starts another. @returns when */
async function kill(i: number): Promise<number> {
  const { name } = nth(running.fleet.workers, i);
  const before = await pids();
  const pid = before.get(name) ?? expect.fail(`${name} is not in the fleet`);
  process.kill(pid, "SIGKILL");
  const at = performance.now();
  await until(async () => {
    const now = (await pids()).get(name);
    return now !== undefined && now !== pid;
  });
  return at;
}

const sumOfWorkers = async (name: string): Promise<number> => {
  const pages = await Promise.all(running.fleet.workers.map(async (worker) => scrape(await metricsOf(worker))));
  const samples = pages.flatMap((page) => [...page.samples]);
  return samples.reduce((sum, [series, value]) => (series.startsWith(name) ? sum + value : sum), 0);
};

describe("ten killed workers", () => {
  it("leave counts that never fall, are never too high, and lack a lease's worth at most", async () => {
    let isOver = false;
    const kills: number[] = [];
    let takenOver = 0;
    const killing = async () => {
      for (let i = 0; i < KILLS; i++) {
        await pause(500);
        takenOver = Math.max(takenOver, await sumOfWorkers("baton_takeovers_total"));
        kills.push(await kill(i));
      }
      await pause(2_000);
    };
    const acting = killing().finally(() => (isOver = true));
    const clients = Array.from({ length: CLIENTS }, (_, i) => client(i + 1, () => isOver));
    const falls = models.map((model) => watchFalls(running.fleet.urls, model, () => isOver));
    await Promise.all([acting, ...clients]);
    expect(await Promise.all(falls)).toEqual([undefined, undefined]);
    for (const model of models) {
      const seen = results[model];
      // A lease before the death is the oldest result that its last beat may lack.
      const near = seen.filter((at) => kills.some((death) => at > death - LEASE_MS && at < death + LEASE_MS)).length;
      const counts = () => Promise.all(running.fleet.urls.map((url) => successesOf(url, model)));
      const least = seen.length - near;
      const found = await readUntil(counts, (all) => all.every((count) => count >= least), { patienceMs: 10_000 });
      expect(Math.min(...found), `of ${seen.length} results of ${model}`).toBeGreaterThanOrEqual(least);
      expect(Math.max(...found), `of ${seen.length} results of ${model}`).toBeLessThanOrEqual(seen.length);
    }
    takenOver = Math.max(takenOver, await sumOfWorkers("baton_takeovers_total"));
    expect(takenOver).toBeGreaterThan(0);
    expect(await sumOfWorkers('baton_supervisor_restarts_total{signal="SIGKILL"}')).toBe(KILLS);
  });
});
