/** An iterative model is run again for the same request until it asks for no further run. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { iterating, notIterating } from "../fixtures/iterating.js";
import { metricsOf, scrape } from "../metrics/scrape.js";
import { makeModels } from "../support/fleet/made-model.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { ask, input } from "./ask.js";

const repository = mkdtempSync(join(tmpdir(), "baton-iterative-"));
afterAll(() => rmSync(repository, { recursive: true }));
makeModels(repository, iterating);
makeModels(repository, Object.fromEntries(Object.entries(notIterating).map(([name, { model }]) => [name, model])));

const running = useFleet({
  repository,
  models: [],
  serving: Object.keys(iterating),
  env: { BATON_METRICS_PORT: "0" },
});

const counted = (upTo: number): number => (upTo * (upTo + 1)) / 2;

function count(upTo: number, parameters?: Record<string, unknown>, model = "counts") {
  const inputs = [input("N", "FP32", [1, 1], [upTo])];
  return ask(running.url, model, { inputs, ...(parameters && { parameters }) });
}

async function runsOf(model: string): Promise<number> {
  const [worker] = running.fleet.workers;
  const { samples } = await scrape(await metricsOf(worker ?? expect.fail("there is a worker")));
  return samples.get(`nv_inference_exec_count{model="${model}",version="1"}`) ?? 0;
}

describe("an iterative model", () => {
  it("runs on with its states until it asks for no further run, and answers once", async () => {
    const before = await runsOf("counts");
    expect(await count(5)).toMatchObject({ status: 200, outputs: { TOTAL: [15] } });
    expect((await runsOf("counts")) - before).toBe(5);
    expect(await count(1)).toMatchObject({ status: 200, outputs: { TOTAL: [1] } });
  });

  it("feeds outputs to the inputs of the next run", async () => {
    const inputs = [input("X", "FP32", [1, 1], [3])];
    expect(await ask(running.url, "doubles", { inputs })).toMatchObject({ status: 200, outputs: { Y: [192] } });
  });

  it("feeds an output to an input that the request may leave out", async () => {
    const upTo = input("UP_TO", "FP32", [1], [100]);
    const from = (...inputs: ReturnType<typeof input>[]) => ask(running.url, "doubles-from-one", { inputs });
    expect(await from(upTo)).toMatchObject({ status: 200, outputs: { Y: [128] } });
    expect(await from(upTo, input("X", "FP32", [1], [3]))).toMatchObject({ status: 200, outputs: { Y: [192] } });
  });

  it("runs requests together that began at different times", async () => {
    const model = "counts-slowly";
    const before = await runsOf(model);
    const lengths = [30, 10, 20, 15];
    const answers = await Promise.all(lengths.map((length) => count(length, undefined, model)));
    expect(answers.map(({ outputs }) => outputs)).toEqual(lengths.map((length) => ({ TOTAL: [counted(length)] })));
    const runs = (await runsOf(model)) - before;
    // The longest, and those for which a request had not come yet, or came a moment too late.
    expect(runs).toBeGreaterThanOrEqual(30);
    expect(runs).toBeLessThan(40);
  });

  it("ends a request with an error that asks for more runs than it may have", async () => {
    expect(await count(100)).toMatchObject({ status: 200, outputs: { TOTAL: [counted(100)] } });
    expect(await count(101)).toMatchObject({
      status: 500,
      error: "output 'MORE' still asks for another run after 100 runs, which is max_iterations",
    });
  });

  it("keeps the state of a request with an id for the next request, and takes START with END", async () => {
    const of = (id: number, more: Record<string, unknown>) => ({ sequence_id: id, ...more });
    expect(await count(3, of(7, { sequence_start: true }))).toMatchObject({ outputs: { TOTAL: [6] } });
    expect(await count(5, of(7, {}))).toMatchObject({ outputs: { TOTAL: [15] } });
    expect(await count(4, of(8, { sequence_start: true, sequence_end: true }))).toMatchObject({
      outputs: { TOTAL: [10] },
    });
    expect(await count(4, of(8, {}))).toMatchObject({ status: 400 });
  });

  it("takes one row for each request", async () => {
    const two = await ask(running.url, "counts", { inputs: [input("N", "FP32", [2, 1], [1, 2])] });
    expect([two.status, two.error]).toEqual([400, expect.stringContaining("must specify batch-size 1")]);
  });

  it.each(Object.entries(notIterating))("is not loaded as %s", async (name, { reason }) => {
    const index = await fetch(`${running.url}/v2/repository/index`, { method: "POST" });
    const listed = (await index.json()) as { readonly name: string; readonly state: string; readonly reason: string }[];
    expect(listed.find((one) => one.name === name)).toMatchObject({
      state: "UNAVAILABLE",
      reason: expect.stringMatching(reason) as string,
    });
  });
});
