import { beforeAll, describe, expect, it } from "vitest";
import { noGpu, softwareGpu, unlessSkipped } from "../../support/fleet/software-gpu.js";
import { ownConfig } from "../../support/fleet/repository.js";
import { until } from "../../support/until.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { ask, input, step } from "../../spec/ask.js";
import { chainStep } from "../../fixtures/models/chain-reference.js";
import { viewFleet, type FleetView } from "./fleet-view.js";

/** A worker that starts has tried its providers long before. */
const PATIENCE_MS = 60_000;
/** EX_CONFIG of sysexits.h. */
const UNUSABLE = 78;

describe("a worker whose device is not there", () => {
  const served = useFleet({ workers: 0, models: ["simple"], serving: [] });

  async function refused(env: Record<string, string>): Promise<string> {
    const worker = served.fleet.launch("worker/supervisor.js", { ...noGpu, ...env });
    expect((await worker.exited).code).toBe(UNUSABLE);
    const fatal = worker.lines.find(({ fields }) => fields["msg"] === "worker cannot start");
    return (fatal?.fields["error"] as string | undefined) ?? worker.lines.at(-1)?.text ?? "";
  }

  it.each([
    ["cuda", "cuda,cpu", /^cuda: .*CUDA 12.* is missing \(.+\)$/],
    ["webgpu", "webgpu,cpu", /^webgpu: no Vulkan driver offers a GPU .*adapter.*\)$/],
    ["tensorrt,cuda", "tensorrt,cuda,cpu", /^tensorrt: .*TensorRT 10.* is missing \(.+\); cuda: .+\)$/],
  ])("says so and stops: %s", { timeout: PATIENCE_MS }, async (asked, instead, reasons) => {
    const [sentence = "", why = ""] = (await refused({ BATON_PROVIDERS: asked })).split(/\. ([^]*)/);
    expect(sentence).toBe(
      `BATON_PROVIDERS asks for ${asked}, and nothing of that is there (with ${instead} the worker would go on without a GPU)`,
    );
    expect(why).toMatch(reasons);
  });

  it("is not started with settings that mean nothing", { timeout: PATIENCE_MS }, async () => {
    expect(await refused({ BATON_PROVIDERS: "gpu" })).toContain(
      "BATON_PROVIDERS: there is no execution provider 'gpu'; there are cuda, tensorrt, webgpu, cpu",
    );
    expect(await refused({ BATON_PROVIDERS: "cpu", BATON_GPU: "1" })).toMatch(/BATON_GPU is 1, but .* no GPU/);
    expect(await refused({ BATON_PROVIDERS: "webgpu", BATON_GPU: "1" })).toMatch(/leave BATON_GPU out/);
  });

  it("goes on with the next one that its settings allow", { timeout: PATIENCE_MS }, async () => {
    const worker = await served.fleet.addWorker({ ...noGpu, BATON_PROVIDERS: "cuda,webgpu,cpu" });
    const warned = worker.process.lines.find(({ fields }) => String(fields["msg"]).startsWith("no GPU can be used"));
    expect(warned?.fields["missing"]).toEqual([
      expect.stringMatching(/^cuda: /) as string,
      expect.stringMatching(/^webgpu: /) as string,
    ]);
    await expect
      .poll(async () => (await viewFleet(served.url)).workers.map(({ device, models }) => [device?.provider, models]))
      .toEqual([["cpu", [{ name: "simple", version: "1", provider: "cpu" }]]]);
    const { memory } = (await viewFleet(served.url)).workers[0]?.device ?? {};
    expect(memory?.used_bytes).toBeGreaterThan(10_000_000);
    expect(memory?.total_bytes).toBeGreaterThan(memory?.used_bytes ?? Infinity);
  });
});

const group = (text: string) => (model: string) => ({
  [model]: `${ownConfig(model) ?? ""}instance_group { ${text} }\n`,
});

describe.skipIf(softwareGpu === undefined)(`models on a worker with a GPU${unlessSkipped}`, () => {
  const models = [
    "chain",
    "far-sine",
    "echo-fp32",
    "echo-fp64",
    "echo-int32",
    "echo-int64",
    "gen-mqa-fp16",
    "gen-cheap",
    "gen-pill",
    "codes",
  ];
  const served = useFleet({
    workers: 0,
    models,
    serving: [],
    configs: {
      ...group("kind: KIND_CPU")("echo-fp32"),
      ...group("kind: KIND_GPU")("echo-int32"),
      ...group("kind: KIND_GPU gpus: [ 1 ]")("echo-int64"),
      ...group("gpus: [ 0 ]")("echo-fp64"),
      ...group("kind: KIND_CPU")("gen-cheap"),
      ...group("kind: KIND_GPU")("gen-pill"),
    },
  });

  const places = ({ workers: [worker] }: FleetView) =>
    Object.fromEntries((worker?.models ?? []).map(({ name, provider }) => [name, provider]));
  const reasons = ({ workers: [worker] }: FleetView) =>
    Object.fromEntries((worker?.failed ?? []).map(({ name, reason }) => [name, reason]));

  /** Calls `look` while this is the only worker. */
  async function withWorker(env: Record<string, string>, look: () => Promise<void> = async () => {}) {
    const worker = await served.fleet.addWorker({ ...softwareGpu, ...env });
    await until(async () => (await viewFleet(served.url)).workers.length === 1);
    const view = await viewFleet(served.url);
    await look();
    await worker.terminate();
    await until(async () => (await viewFleet(served.url)).workers.length === 0);
    return view;
  }

  let strict: FleetView;
  let lenient: FleetView;
  let without: FleetView;
  const values: unknown[] = [];
  beforeAll(async () => {
    const next = async (flags: { start?: boolean }) => {
      const { outputs, error } = await ask(served.url, "chain", step(7, 3, flags));
      values.push(outputs["OUTPUT"]?.[0] ?? error);
    };
    without = await withWorker({ BATON_PROVIDERS: "cpu" }, async () => {
      await next({ start: true });
      await next({});
    });
    strict = await withWorker({ BATON_PROVIDERS: "webgpu" }, () => next({}));
    lenient = await withWorker({ BATON_PROVIDERS: "webgpu,cpu" }, async () => {
      await next({});
      const { outputs } = await ask(served.url, "far-sine", { inputs: [input("X", "FP32", [1, 4], [10, 20, 30, 40])] });
      expect(outputs["Y"]).toHaveLength(4);
    });
  }, 240_000);

  it("go where their configuration says", () => {
    expect(places(strict)).toEqual({
      chain: "webgpu",
      codes: "webgpu",
      "echo-fp32": "cpu",
      "echo-fp64": "webgpu",
      "echo-int32": "webgpu",
      "gen-cheap": "cpu",
      "gen-pill": "webgpu",
    });
    expect(reasons(strict)["echo-int64"]).toMatch(/invalid or unsupported gpu id 1\. Available GPUs are: 0$/);
    for (const model of ["echo-int32", "gen-pill"]) {
      expect(reasons(without)[model]).toMatch(/has kind KIND_GPU but no GPUs are available$/);
    }
  });

  it("are refused where their answers are not the CPU's, or they cannot be run there", () => {
    expect(reasons(strict)["far-sine"]).toMatch(
      /^its answers there are not those of the CPU: element \d+ of 'Y' is .* instead of .*, where at most 0\.001 /,
    );
    expect(reasons(strict)["gen-mqa-fp16"]).toMatch(/requires f16 but the device does not support it/);
  });

  it("go on the CPU instead where the worker's settings allow it, and that is said", () => {
    expect(places(lenient)).toMatchObject({ chain: "webgpu", "far-sine": "cpu", "gen-mqa-fp16": "cpu" });
    const warnings = Object.fromEntries(lenient.models.map(({ name, warnings }) => [name, warnings]));
    expect(warnings["far-sine"]).toEqual([
      expect.stringMatching(/^it runs on cpu, since it could not be loaded on webgpu on GPU 0: its answers there/),
    ]);
    expect(warnings["gen-mqa-fp16"]).toEqual([expect.stringContaining("requires f16")]);
    expect(warnings["chain"]).toBeUndefined();
  });

  it("are served with a warning where nothing could be compared", () => {
    const { warnings } = strict.models.find(({ name }) => name === "codes") ?? {};
    expect(warnings).toEqual([
      expect.stringMatching(/^its answers were not compared with the CPU's, which cannot run made-up inputs: onnx/),
    ]);
  });

  it("continue the sequences of workers without one, and the other way round", () => {
    const expected: bigint[] = [];
    for (let i = 0; i < 4; i++) expected.push(chainStep(expected.at(-1) ?? null, 3n));
    expect(values).toEqual(expected.map(Number));
  });
});
