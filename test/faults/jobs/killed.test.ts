/**
 * Gateways, workers and redis-server are killed while clients submit jobs: each job has one effect
 * and one outcome, and a client that repeats a submission under its key gets the same job.
 */
import { describe, expect, it } from "vitest";
import { nth, pause, repeatedly } from "../pace.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { ask, simpleBody, submit, type Body } from "../../jobs/ask.js";

const served = useFleet({
  gateways: 2,
  workers: 2,
  models: ["accumulate", "simple", "gen-cheap"],
  env: { BATON_BUCKETS: "4" },
});

const SEQUENCES = 12;
const STEPS = 10;
const OTHERS = 60;
const PATIENCE_MS = 120_000;

interface Planned {
  readonly model: string;
  readonly job: object;
  readonly key: string;
}

/** Asks one gateway after the other until a gateway gives an accepted answer. */
async function persist(path: string, accept: (status: number) => boolean, sent?: Planned): Promise<Body> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (let i = 0; ; i++) {
    const url = nth(served.fleet.urls, i);
    try {
      const headers = { "idempotency-key": sent?.key ?? "" };
      const { status, body, text } = await (sent === undefined
        ? ask(`${url}${path}`)
        : submit(url, sent.model, sent.job, headers));
      if (accept(status)) return body;
      if (status !== 503) throw new TypeError(`${path} was answered ${status} ${text}`);
    } catch (error) {
      if (error instanceof TypeError && error.message.includes("was answered")) throw error;
      if (performance.now() > giveUpAt) throw error;
    }
    await pause(50);
  }
}

function step(sequence: number, i: number): Planned {
  const infer = {
    parameters: { sequence_id: sequence, sequence_start: i === 1 },
    inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [i] }],
  };
  return { model: "accumulate", job: { infer, labels: { kind: "step" } }, key: `s${sequence}-${i}` };
}

function other(i: number): Planned {
  const generate = { text_input: `Once ${i}`, max_tokens: 12, temperature: 0 };
  return i % 3 === 0
    ? { model: "gen-cheap", job: { generate }, key: `o${i}` }
    : { model: "simple", job: { infer: simpleBody(i) }, key: `o${i}` };
}

const send = (planned: Planned) => persist("a job", (status) => status === 202, planned);
const ENDED = /^(completed|failed|cancelled|expired)$/;

async function untilEnded(id: string): Promise<Body> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const view = await persist(`/v2/jobs/${id}`, (status) => status === 200);
    if (ENDED.test(view.state)) return view;
    if (performance.now() > giveUpAt) throw new Error(`${id} is still ${view.state}`);
    await pause(50);
  }
}

async function listAll(): Promise<string[]> {
  const ids: string[] = [];
  for (let after = ""; ;) {
    const page = await persist(`/v2/jobs?limit=100${after}`, (status) => status === 200);
    ids.push(...page.data.map(({ id }) => id));
    if (!page.has_more) return ids;
    after = `&after=${page.last_id}`;
  }
}

describe("jobs whose gateways, workers and Redis are killed", () => {
  it("each end once, with the outcome that they should have", { timeout: 300_000 }, async () => {
    const { gateways, workers, redis } = served.fleet;
    const sequences = Array.from({ length: SEQUENCES }, async (_, n) => {
      const jobs: [Planned, Body][] = [];
      for (let i = 1; i <= STEPS; i++) {
        const planned = step(n + 1, i);
        jobs.push([planned, await send(planned)]);
        await pause(400);
      }
      return jobs;
    });
    const others = Array.from({ length: OTHERS }, async (_, i): Promise<[Planned, Body]> => {
      await pause(80 * i);
      return [other(i), await send(other(i))];
    });
    const breaking = Promise.all([
      repeatedly(3, 900, (i) => nth(gateways, i).member.restart()),
      repeatedly(3, 1_100, (i) => nth(workers, i).restart()),
      repeatedly(2, 1_500, async () => {
        await redis.kill();
        await redis.restart();
      }),
    ]);
    const steps = await Promise.all(sequences);
    const all = [...steps.flat(), ...(await Promise.all(others))];
    await breaking;

    const ends = await Promise.all(all.map(([, { id }]) => untilEnded(id)));
    expect(ends.filter(({ state }) => state !== "completed")).toEqual([]);
    const sums = ends.slice(0, SEQUENCES * STEPS).map(({ result }) => result?.outputs?.[0]?.data[0]);
    expect(sums).toEqual(steps.flatMap((jobs) => jobs.map((_, i) => ((i + 1) * (i + 2)) / 2)));
    const again = await Promise.all(all.map(([planned]) => send(planned)));
    expect(again.map(({ id }) => id)).toEqual(all.map(([, { id }]) => id));
    expect(again.map(({ ended_at }) => ended_at)).toEqual(ends.map(({ ended_at }) => ended_at));
    expect((await listAll()).toSorted()).toEqual(all.map(([, { id }]) => id).toSorted());
  });
});
