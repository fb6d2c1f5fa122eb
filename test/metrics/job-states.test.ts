/**
 * The observer's figures of jobs agree with their clients: every job counts in its state, and once
 * when it ends, however it ends and whether or not a webhook wants to hear of it.
 */
import { describe, expect, it } from "vitest";
import { accepted, ask, ended, simpleBody, standing } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";
import { observer, pageOf } from "../statistics/observing.js";
import { metricsOf, scrape, type Page } from "./scrape.js";

const running = useFleet({
  gateways: 2,
  workers: 2,
  jobs: 1,
  models: ["simple", "picky", "gen-cheap"],
  direct: true,
  env: { BATON_METRICS_PORT: "0" },
});
/** With a job that completes and a job that fails each. */
const ROUNDS = 60;
const AT_ONCE = 12;
/** The observer makes a round every five seconds. */
const PATIENCE = { patienceMs: 20_000 };

const bad = { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1_000_000] }] };
/** Generations that together take longer than some rounds of the observer. */
const STREAMS = 8;
const long = { text_input: "Once upon a time", max_tokens: 65_536, ignore_eos: true };

const shown = async () => pageOf(await observer(running.fleet.gateways));
const stands = ({ samples }: Page) =>
  ["scheduled", "queued", "running"].map((state) => samples.get(`baton_jobs{state="${state}"}`));
const untilStands = (states: readonly number[]) =>
  readUntil(shown, (page) => stands(page).join() === states.join(), PATIENCE);
const endsOf = ({ samples }: Page) =>
  Object.fromEntries(
    [...samples].flatMap(([series, count]) => {
      const [, model, state] = /^baton_jobs_ended_total\{model="(.*)",state="(.*)"\}$/.exec(series) ?? [];
      return model === undefined || count === 0 ? [] : [[`${model} ${state}`, count]];
    }),
  );
const cancel = (id: string) => ask(`${running.url}/v2/jobs/${id}`, { method: "DELETE" });
const urlOf = (i: number) => running.fleet.urls[i % 2] ?? "";

describe("jobs", () => {
  it("are shown as scheduled, queued and running, and count where they end", { timeout: 120_000 }, async () => {
    const { workers } = running.fleet;
    const later = await accepted(running.url, "simple", {
      infer: simpleBody(1),
      run_at: new Date(Date.now() + 3_600_000).toISOString(),
    });
    const streams = await Promise.all(
      Array.from({ length: STREAMS }, (_, i) => accepted(urlOf(i), "gen-cheap", { generate: long })),
    );
    for (const { id } of streams) await standing(running.url, id, ({ state }) => state === "running");
    await untilStands([1, 0, STREAMS]);
    for (const { id } of streams) expect((await cancel(id)).status).toBe(200);
    await untilStands([1, 0, 0]);
    await Promise.all(workers.map((worker) => worker.kill()));
    const waiting = await Promise.all(
      [1, 2, 3].map((i) => accepted(urlOf(i), "simple", { infer: simpleBody(i), ...(i === 1 && { deadline: 2_000 }) })),
    );
    const [expired, cancelled, completed] = waiting.map(({ id }) => id);
    expect((await cancel(cancelled ?? "")).status).toBe(200);
    expect((await cancel(later.id)).status).toBe(200);
    expect((await ended(running.url, expired ?? "")).state).toBe("expired");
    await untilStands([0, 1, 0]);
    await Promise.all(workers.map((worker) => worker.start()));
    expect((await ended(running.url, completed ?? "")).state).toBe("completed");
    const all = await untilStands([0, 0, 0]);
    expect(endsOf(all)).toEqual({
      "gen-cheap cancelled": STREAMS,
      "simple cancelled": 2,
      "simple completed": 1,
      "simple expired": 1,
    });
    // A model without jobs has its zeros.
    expect(all.value('baton_jobs_ended_total{model="picky",state="failed"}')).toBe(0);
  });

  it("count once each when many end at once, and on the page of one process", { timeout: 120_000 }, async () => {
    const before = endsOf(await shown());
    const left = Array.from({ length: ROUNDS }, (_, i) => i);
    const client = async () => {
      for (let i = left.pop(); i !== undefined; i = left.pop()) {
        const key = { "idempotency-key": `job-${i}` };
        const job = { infer: simpleBody(i) };
        const [first, again, failing] = await Promise.all([
          accepted(urlOf(i), "simple", job, key),
          accepted(urlOf(i + 1), "simple", job, key),
          accepted(urlOf(i), "picky", { infer: bad, attempts: 2, backoff: { type: "fixed", delay: 100 } }),
        ]);
        expect(again.id).toBe(first.id);
        expect((await ended(urlOf(i + 1), first.id)).state).toBe("completed");
        expect((await ended(urlOf(i), failing.id)).state).toBe("failed");
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
    const expected = {
      ...before,
      "picky failed": ROUNDS,
      "simple completed": (before["simple completed"] ?? 0) + ROUNDS,
    };
    const all = await readUntil(shown, (page) => endsOf(page)["picky failed"] === ROUNDS, PATIENCE);
    expect(endsOf(all)).toEqual(expected);
    expect(stands(all)).toEqual([0, 0, 0]);
    const { workers, gateways, jobs } = running.fleet;
    const others = [...workers, ...jobs, ...gateways.map(({ member }) => member)];
    const pages = await Promise.all(others.map(async (member) => scrape(await metricsOf(member))));
    expect(pages.filter(({ types }) => types.has("baton_jobs_ended_total"))).toHaveLength(1);
  });
});
