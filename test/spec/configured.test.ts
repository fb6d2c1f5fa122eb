/** Each field of a configuration that Baton obeys means in a fleet the same as in Triton. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { configured, misconfigured } from "../fixtures/configured.js";
import { GrpcClient, parameters } from "../protocols/grpc/client.js";
import { makeModels } from "../support/fleet/made-model.js";
import { makeRepository, ownConfig } from "../support/fleet/repository.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { metricsOf, scrape } from "../metrics/scrape.js";
import { ask, input } from "./ask.js";

const repository = mkdtempSync(join(tmpdir(), "baton-configured-"));
afterAll(() => rmSync(repository, { recursive: true }));
makeModels(repository, configured);
makeModels(repository, Object.fromEntries(Object.entries(misconfigured).map(([name, { model }]) => [name, model])));

makeRepository(repository, ["slow"], { slow: `${ownConfig("slow")}\ninstance_group { count: 2 kind: KIND_CPU }` });

const running = useFleet({
  repository,
  models: [],
  serving: [...Object.keys(configured), "slow"],
  grpc: true,
  env: { BATON_METRICS_PORT: "0" },
});

interface Printed {
  readonly outputs: readonly { readonly shape: readonly number[]; readonly data: readonly number[] }[];
}

/** An answer with its shapes. */
async function infer(model: string, inputs: readonly unknown[]): Promise<Printed["outputs"]> {
  const body = JSON.stringify({ inputs });
  const response = await fetch(`${running.url}/v2/models/${model}/infer`, { method: "POST", body });
  return ((await response.json()) as Printed).outputs;
}

/** The samples of the worker's page. */
async function samples(): Promise<ReadonlyMap<string, number>> {
  const [worker] = running.fleet.workers;
  return (await scrape(await metricsOf(worker ?? expect.fail("there is a worker")))).samples;
}

async function json(path: string): Promise<unknown> {
  return (await fetch(running.url + path)).json();
}

describe("reshape", () => {
  it("gives the graph its own shapes, and clients those of dims", async () => {
    const rows = [[1, 2, 3, 4, 5, 6].map((value) => value * 10), [1, 2, 3, 4, 5, 6]];
    const answers = await Promise.all([
      infer("transposes", [input("X", "FP32", [2, 6], rows.flat())]),
      infer("transposes", [input("X", "FP32", [1, 6], [6, 5, 4, 3, 2, 1])]),
    ]);
    expect(answers.flat()).toEqual([
      expect.objectContaining({ shape: [2, 1, 6], data: [10, 40, 20, 50, 30, 60, 1, 4, 2, 5, 3, 6] }),
      expect.objectContaining({ shape: [1, 1, 6], data: [6, 3, 5, 2, 4, 1] }),
    ]);
  });

  it("keeps the order of variable sizes", async () => {
    const [answer] = await infer("transposes-any", [input("X", "FP32", [2, 3], [1, 2, 3, 4, 5, 6])]);
    expect(answer).toMatchObject({ shape: [3, 1, 2], data: [1, 4, 2, 5, 3, 6] });
  });

  it("refuses the graph's shape in a request, and shows in the configuration", async () => {
    const { status, error } = await ask(running.url, "transposes", {
      inputs: [input("X", "FP32", [1, 2, 3], [1, 2, 3, 4, 5, 6])],
    });
    expect([status, error]).toEqual([400, expect.stringContaining("Expected [-1,6], got [1,2,3]")]);
    expect(await json("/v2/models/transposes/config")).toMatchObject({
      input: [{ name: "X", dims: [6], reshape: { shape: [2, 3] } }],
      output: [{ name: "Y", dims: [1, 6], reshape: { shape: [3, 2] } }],
    });
  });
});

describe("label_filename", () => {
  const rows = [0.5, 3, -1, 7, 7, 0.25];
  const texts = ["3.000000:1:dog", "0.500000:0:cat", "7.000000:0:cat", "7.000000:1:dog"];

  it("names the classes of the classification extension", async () => {
    const outputs = (classes: number) => [{ name: "Y", parameters: { classification: classes } }];
    const answer = await fetch(`${running.url}/v2/models/labelled/infer`, {
      method: "POST",
      body: JSON.stringify({ inputs: [input("X", "FP32", [2, 3], rows)], outputs: outputs(2) }),
    });
    expect(((await answer.json()) as Printed).outputs).toEqual([
      { name: "Y", datatype: "BYTES", shape: [2, 2], data: texts },
    ]);
  });

  it("refuses classes in an answer that comes later", async () => {
    const outputs = [{ name: "Y", parameters: { classification: 2 } }];
    const asked = { inputs: [input("X", "FP32", [2, 3], rows)], outputs };
    const refusal = async (path: string, body: unknown) => {
      const call = { method: "POST", headers: { prefer: "respond-async" }, body: JSON.stringify(body) };
      const answer = await fetch(`${running.url}/v2/models/labelled/${path}`, call);
      return [answer.status, ((await answer.json()) as { error: string }).error];
    };
    const later = [400, expect.stringMatching(/^'classification' is not supported for a job or a request in the/)];
    expect(await refusal("infer", asked)).toEqual(later);
    expect(await refusal("jobs", { infer: asked })).toEqual(later);
  });

  it("does the same over gRPC", async () => {
    const client = new GrpcClient(running.fleet.gateways[0]?.grpc ?? "");
    const infer = (classes: number) =>
      client.call("ModelInfer", {
        model_name: "labelled",
        inputs: [{ name: "X", datatype: "FP32", shape: [2, 3], contents: { fp32_contents: rows } }],
        outputs: [{ name: "Y", parameters: parameters({ classification: classes }) }],
      });
    const message = (await infer(2)).message ?? expect.fail("the model answers");
    const [raw] = message["raw_output_contents"] as readonly Buffer[];
    const lengths = texts.map((text) => Buffer.from(Uint32Array.of(text.length).buffer).toString("latin1"));
    expect(raw?.toString("latin1")).toBe(texts.map((text, i) => `${lengths[i]}${text}`).join(""));
    expect((await infer(0)).details).toBe("invalid value for 'classification' parameter, expected >= 0");
    client.close();
  });
});

describe("a ragged batch", () => {
  it("runs requests of different shapes at once, and gives each its own part", async () => {
    const runs = 'nv_inference_exec_count{model="ragged",version="1"}';
    expect((await samples()).get(runs)).toBe(0);
    // The batch waits until it has three requests.
    const given = [[1, 2, 3], [10], [4, 5]];
    const answers = await Promise.all(given.map((one) => infer("ragged", [input("X", "FP32", [1, one.length], one)])));
    const shown = answers.map((outputs) => outputs.map(({ shape, data }) => ({ shape, data })));
    expect(shown).toEqual(
      given.map((one) => [
        { shape: [1, 1], data: [one.reduce((sum, value) => sum + value)] },
        { shape: [1, one.length], data: one.map((value) => value * 2) },
      ]),
    );
    expect((await samples()).get(runs)).toBe(1);
    expect(await json("/v2/models/ragged/config")).toMatchObject({
      input: [{ allow_ragged_batch: true }],
      batch_input: [{ kind: "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", target_name: ["BOUNDS"] }],
      batch_output: [{ kind: "BATCH_SCATTER_WITH_INPUT_SHAPE", source_input: ["X"] }],
    });
  });
});

describe("an optional input", () => {
  it("has the graph's own value if a request leaves it out", async () => {
    const x = input("X", "FP32", [2], [1, 2]);
    const w = input("W", "FP32", [2], [100, 200]);
    const v = input("V", "INT64", [1], [0]);
    const outputs = async (inputs: readonly unknown[]) => (await ask(running.url, "optional", { inputs })).outputs;
    expect(await outputs([x])).toEqual({ Y: [11, 22], Z: [22] });
    expect(await outputs([v, x])).toEqual({ Y: [11, 22], Z: [11] });
    expect(await outputs([x, w, v])).toEqual({ Y: [101, 202], Z: [101] });
    expect(await outputs([x, w])).toEqual({ Y: [101, 202], Z: [202] });
    expect((await ask(running.url, "optional", { inputs: [w] })).error).toBe(
      "[request id: <id_unknown>] expected number of inputs between 1 and 3 but got 1 inputs for model 'optional'. " +
        "Got input(s) ['W'], but missing required input(s) ['X']. Please provide all required input(s).",
    );
    expect((await ask(running.url, "optional", { inputs: [x, input("U", "FP32", [1], [1])] })).error).toBe(
      "unexpected inference input 'U' for model 'optional'",
    );
    expect(await json("/v2/models/optional/config")).toMatchObject({
      input: [{ optional: false }, { optional: true }, { optional: true }],
    });
  });
});

describe("metric_tags and model_metrics", () => {
  it("are labels of all figures of the model, and the buckets of its histogram", async () => {
    const own = 'model="tagged",version="1"';
    const tags = String.raw`_team="the \"first\"",_tier="2"`;
    const inputs = [input("I", "INT64", [1, 1], [1])];
    expect((await ask(running.url, "tagged", { inputs })).outputs["Y"]).toEqual([11]);
    const success = `nv_inference_request_success{${own},${tags}}`;
    await expect.poll(async () => (await samples()).get(success)).toBe(1);
    const found = await samples();
    const series = [...found].filter(([name]) => name.includes(own));
    expect(series.length).toBeGreaterThan(20);
    expect(series.filter(([name]) => !name.includes(tags))).toEqual([]);
    const bucket = (le: string) =>
      found.get(`nv_inference_first_response_histogram_ms_bucket{${own},${tags},le="${le}"}`);
    expect(["0.001", "600000", "+Inf", "100"].map(bucket)).toEqual([0, 1, 1, undefined]);
    // Without model_metrics a tensor model has no such histogram, as in Triton.
    const others = [...found.keys()].filter((name) => name.startsWith("nv_inference_first_response_histogram_ms"));
    expect(others.every((name) => name.includes(own))).toBe(true);
    expect(await json("/v2/models/tagged/config")).toMatchObject({ metric_tags: { tier: "2" } });
  });
});

it("cc_model_filenames is warned of on the CPU", async () => {
  const { models } = (await json("/v2/fleet")) as { models: readonly { name: string; warnings?: string[] }[] };
  expect(models.find(({ name }) => name === "of-cards")?.warnings).toEqual([
    expect.stringMatching(/^cc_model_filenames has no effect: /),
  ]);
  expect(models.flatMap(({ warnings = [] }) => warnings)).toHaveLength(1);
});

describe("a warm-up", () => {
  it("runs before the model serves, and leaves no trace in sequences", async () => {
    expect((await ask(running.url, "warm-picks", { inputs: [input("I", "INT64", [1, 1], [2])] })).outputs["Y"]).toEqual(
      [12],
    );
    const step = (flags: Record<string, unknown>) =>
      ask(running.url, "warm-sums", { parameters: flags, inputs: [input("X", "FP32", [1, 1], [2])] });
    // The made-up sequences had the ids 1 and 2.
    expect((await step({ sequence_id: 1 })).error).toMatch(/must specify the START flag|START/);
    expect((await step({ sequence_id: 1, sequence_start: true })).outputs["Y"]).toEqual([2]);
    expect((await step({ sequence_id: 1 })).outputs["Y"]).toEqual([4]);
    expect(await json("/v2/models/warm-sums/config")).toMatchObject({
      model_warmup: [{ name: "begins", batch_size: 2, count: 3, inputs: { X: { random_data: true } } }],
    });
  });
});

describe("instances", () => {
  it("run side by side in one worker: a short request overtakes a long one", async () => {
    const ended: string[] = [];
    const run = async (name: string, rounds: number) => {
      await ask(running.url, "slow", { inputs: [input("N", "INT64", [1], [rounds])] });
      ended.push(name);
    };
    const long = run("long", 4_000);
    const underWay = 'baton_held_requests{model="slow",version="1",stage="running"}';
    await expect.poll(async () => (await samples()).get(underWay)).toBe(1);
    await run("short", 1);
    await long;
    expect(ended).toEqual(["short", "long"]);
  });

  it("keep the order of each sequence", async () => {
    const sum = async (id: number) => {
      const sums: unknown[] = [];
      for (let step = 1; step <= 12; step++) {
        const parameters = { sequence_id: id, sequence_start: step === 1, sequence_end: step === 12 };
        const inputs = [input("X", "FP32", [1, 1], [step * id])];
        sums.push((await ask(running.url, "instances-sums", { parameters, inputs })).outputs["Y"]?.[0]);
      }
      return sums;
    };
    const ids = Array.from({ length: 24 }, (_, i) => i + 1);
    const expected = ids.map((id) => Array.from({ length: 12 }, (_, i) => (id * (i + 1) * (i + 2)) / 2));
    expect(await Promise.all(ids.map(sum))).toEqual(expected);
    expect(await json("/v2/models/instances-sums/config")).toMatchObject({
      instance_group: [
        { name: "instances-sums_0", kind: "KIND_CPU", count: 2 },
        { name: "more", kind: "KIND_CPU", count: 1 },
      ],
    });
  });
});

interface Index {
  readonly name: string;
  readonly reason?: string;
}

describe("a fault of a configuration", () => {
  it.each(Object.entries(misconfigured))(
    "fails the load of %s with a reason in the repository's index",
    async (name, { reason }) => {
      const response = await fetch(`${running.url}/v2/repository/index`, { method: "POST" });
      const index = (await response.json()) as readonly Index[];
      expect(index.find((one) => one.name === name)?.reason).toMatch(reason);
    },
  );
});
