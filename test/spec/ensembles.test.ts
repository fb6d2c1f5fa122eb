/** An ensemble runs the models of its steps, in one request with one state. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { blocksOf } from "../docs/pages.js";
import { ensembles, faultyEnsembles, makeEnsembles, remembered, stepModels } from "../fixtures/ensembles.js";
import { makeRepository } from "../support/fleet/repository.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { ask, input } from "./ask.js";

const repository = mkdtempSync(join(tmpdir(), "baton-ensembles-"));
afterAll(() => rmSync(repository, { recursive: true }));
const faulty = Object.fromEntries(Object.entries(faultyEnsembles).map(([name, { config }]) => [name, config]));
makeEnsembles(repository, { ...ensembles, ...faulty });
// The example of docs/models.md, as a user puts it beside a demo model.
makeRepository(repository, ["accumulate"]);
const [example = ""] = blocksOf("", "docs/models.md").filter((block) => block.startsWith('name: "'));
mkdirSync(join(repository, "sum-of-sums"));
writeFileSync(join(repository, "sum-of-sums/config.pbtxt"), example);
writeFileSync(join(repository, "classifies/own.txt"), "one\ntwo\nthree\n");
const serving = [...Object.keys(stepModels), ...Object.keys(ensembles), "sum-of-sums"];
const running = useFleet({ repository, models: [], serving });

const value = (name: string, ...data: number[]) => input(name, "FP32", [data.length, 1], data);
const once = (model: string, ...inputs: ReturnType<typeof value>[]) => ask(running.url, model, { inputs });

let ids = 0;
function sequenceOf(model: string) {
  const id = ++ids;
  let isFirst = true;
  return (inputs: readonly ReturnType<typeof value>[], isLast = false) => {
    const parameters = { sequence_id: id, sequence_start: isFirst, sequence_end: isLast };
    isFirst = false;
    return ask(running.url, model, { inputs, parameters });
  };
}

interface Statistics {
  readonly inference_count: number;
  readonly execution_count: number;
  readonly inference_stats: { readonly success: { readonly count: number } };
}

async function statisticsOf(model: string): Promise<Statistics> {
  const response = await fetch(`${running.url}/v2/models/${model}/stats`);
  const { model_stats: all } = (await response.json()) as { readonly model_stats: readonly Statistics[] };
  return all[0] ?? expect.fail(`there are statistics of ${model}`);
}

describe("an ensemble", () => {
  it("runs its steps one after the other, with all rows of a request", async () => {
    expect(await once("twice", value("IN", 3))).toMatchObject({ status: 200, outputs: { OUT: [12] } });
    expect(await once("twice", value("IN", 1, 2, 5))).toMatchObject({ outputs: { OUT: [4, 8, 20] } });
  });

  it("runs each step once its inputs exist, in whatever order they are written", async () => {
    expect(await once("ways", value("IN", 3))).toMatchObject({ status: 200, outputs: { SLOW: [12], FAST: [6] } });
    const one = await ask(running.url, "ways", { inputs: [value("IN", 3)], outputs: [{ name: "FAST" }] });
    expect(one.outputs).toEqual({ FAST: [6] });
  });

  it("adds and takes away a batch axis of one row between its models", async () => {
    for (const model of ["twice-alone", "once-alone"]) {
      expect(await once(model, value("IN", 3))).toMatchObject({ status: 200, outputs: { OUT: [12] } });
      expect(await once(model, value("IN", 3, 4))).toMatchObject({
        status: 400,
        error: `in ensemble '${model}', unexpected shape for input 'X' for model 'scales-alone'. Expected [1], got [2,1]`,
      });
    }
  });

  it("keeps the states of all its steps in one sequence", async () => {
    const step = sequenceOf("remembers");
    const inputs = [1, 2, 3, 4.5];
    for (const [i, expected] of remembered(inputs).entries()) {
      expect(await step([value("IN", inputs[i] ?? 0)], i === 3)).toMatchObject({ status: 200, outputs: expected });
    }
    expect(await step([value("IN", 1)])).toMatchObject({
      status: 400,
      error: expect.stringMatching(
        /^in ensemble 'remembers', inference request for sequence \d+ to model 'sums' must specify the START flag on/,
      ) as string,
    });
  });

  it("refuses what its first step with sequences refuses, in Triton's words", async () => {
    const ofStep = "in ensemble 'remembers', inference request to model 'sums' must specify";
    expect(await once("remembers", value("IN", 1))).toMatchObject({
      status: 400,
      error: `${ofStep} a non-zero or non-empty correlation ID`,
    });
    expect(await sequenceOf("remembers")([value("IN", 1, 2)])).toMatchObject({
      status: 400,
      error: `${ofStep} batch-size 1 due to requirements of sequence batcher`,
    });
    expect(await once("nests", value("IN", 1))).toMatchObject({
      error:
        "in ensemble 'nests', inference request to model 'sums' must specify a non-zero or non-empty correlation ID",
    });
  });

  it("gives the labels of its steps to the outputs that have none of their own", async () => {
    const outputs = ["OUT", "OWN"].map((name) => ({ name, parameters: { classification: 1 } }));
    const asked = { inputs: [input("IN", "FP32", [1, 3], [1, 3, 2])], outputs };
    expect((await ask(running.url, "classifies", asked)).outputs).toEqual({
      OUT: ["3.000000:1:dog"],
      OWN: ["3.000000:1:two"],
    });
  });

  it("is written as the example of its page", async () => {
    const answers: unknown[] = [];
    for (const [i, number] of [1, 2, 3].entries()) {
      const parameters = { sequence_id: 77, sequence_start: i === 0, sequence_end: i === 2 };
      const inputs = [input("INPUT", "INT32", [1, 1], [number])];
      answers.push((await ask(running.url, "sum-of-sums", { inputs, parameters })).outputs);
    }
    expect(answers).toEqual([
      { SUM: [1], SUMS: [1] },
      { SUM: [3], SUMS: [4] },
      { SUM: [6], SUMS: [10] },
    ]);
  });

  it("leaves all states as they were if a step fails", async () => {
    const step = sequenceOf("remembers-some");
    const inputs = (number: number, index: number) => [value("IN", number), value("INDEX", index)];
    expect(await step(inputs(2, 0))).toMatchObject({ status: 200, outputs: { SUM: [2], FADED: [2], FOUND: [10] } });
    expect(await step(inputs(5, 9))).toMatchObject({
      status: 500,
      error: expect.stringMatching(/^in ensemble 'remembers-some', onnx runtime error: /) as string,
    });
    expect(await step(inputs(4, 2))).toMatchObject({ status: 200, outputs: { SUM: [6], FADED: [7], FOUND: [30] } });
  });

  it("gives a step with sequences one row for each request", async () => {
    const step = sequenceOf("remembers-alone");
    expect(await step([value("IN", 4)])).toMatchObject({ status: 200, outputs: { SUM: [4] } });
    expect(await step([value("IN", 4, 5)])).toMatchObject({
      status: 400,
      error: expect.stringContaining("'sums' must specify batch-size 1 due to requirements") as string,
    });
    expect(await step([value("IN", 1)])).toMatchObject({ status: 200, outputs: { SUM: [5] } });
  });

  it("runs ensembles as its steps", async () => {
    const step = sequenceOf("nests");
    const inputs = [1, 2, 3];
    const expected = remembered(inputs.map((number) => 4 * number));
    for (const [i, { FADED }] of expected.entries()) {
      expect(await step([value("IN", inputs[i] ?? 0)])).toMatchObject({ status: 200, outputs: { OUT: FADED } });
    }
  });

  it("runs an iterative model as a step, with an id and without", async () => {
    expect(await once("counts-twice", value("N", 4))).toMatchObject({ status: 200, outputs: { OUT: [20] } });
    const step = sequenceOf("counts-twice");
    expect(await step([value("N", 3)])).toMatchObject({ outputs: { OUT: [12] } });
    expect(await step([value("N", 5)])).toMatchObject({ outputs: { OUT: [30] } });
  });

  it("shares batches with the requests of its steps' models, and counts for them", async () => {
    const before = await statisticsOf("scales-together");
    const whole = await statisticsOf("twice-slowly");
    const numbers = Array.from({ length: 8 }, (_, i) => i + 1);
    const [ofEnsemble, alone] = await Promise.all([
      Promise.all(numbers.map((number) => once("twice-slowly", value("IN", number)))),
      Promise.all(numbers.map((number) => once("scales-together", value("X", number)))),
    ]);
    expect(ofEnsemble.map(({ outputs }) => outputs["OUT"])).toEqual(numbers.map((number) => [4 * number]));
    expect(alone.map(({ outputs }) => outputs["Y"])).toEqual(numbers.map((number) => [2 * number]));
    await expect
      .poll(async () => (await statisticsOf("scales-together")).inference_count - before.inference_count)
      .toBe(24);
    const runs = (await statisticsOf("scales-together")).execution_count - before.execution_count;
    // 24 requests would be three full batches; alone they would be 24.
    expect(runs).toBeLessThanOrEqual(12);
    const after = await statisticsOf("twice-slowly");
    expect(after.inference_stats.success.count - whole.inference_stats.success.count).toBe(8);
  });

  it("has queue policies of its own", async () => {
    const asked = (priority: number) => {
      return ask(running.url, "twice-in-levels", { inputs: [value("IN", 3)], parameters: { priority } });
    };
    expect(await asked(2)).toMatchObject({ status: 200, outputs: { OUT: [12] } });
    expect(await asked(3)).toMatchObject({
      status: 400,
      error: "priority 3 is out of range: model 'twice-in-levels' has the priority levels 1 to 2",
    });
  });

  it("is described with its steps", async () => {
    const metadata: unknown = await (await fetch(`${running.url}/v2/models/remembers`)).json();
    expect(metadata).toMatchObject({ platform: "ensemble", inputs: [{ name: "IN", shape: [-1, 1] }] });
    const config: unknown = await (await fetch(`${running.url}/v2/models/remembers/config`)).json();
    expect(config).toMatchObject({
      platform: "ensemble",
      ensemble_scheduling: { step: [{ model_name: "scales" }, { model_name: "sums" }, { model_name: "fades" }] },
    });
  });

  it("keeps answers in the response cache", async () => {
    expect(await once("cached", value("IN", 3))).toMatchObject({ outputs: { OUT: [6] } });
    await expect
      .poll(async () => {
        const before = (await statisticsOf("scales")).inference_count;
        expect(await once("cached", value("IN", 3))).toMatchObject({ outputs: { OUT: [6] } });
        return (await statisticsOf("scales")).inference_count - before;
      })
      .toBe(0);
  });

  it.each(Object.entries(faultyEnsembles))("is not loaded as %s", async (name, { reason }) => {
    const index = await fetch(`${running.url}/v2/repository/index`, { method: "POST" });
    const listed = (await index.json()) as { readonly name: string; readonly state: string; readonly reason: string }[];
    expect(listed.find((one) => one.name === name)).toMatchObject({ state: "UNAVAILABLE", reason });
  });
});
