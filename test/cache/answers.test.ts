/** The cache of a fleet answers as the models do, to equal requests and to no others. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { useKeyedFleet, type Key } from "../auth/keyed.js";
import { metricsOf, scrape } from "../metrics/scrape.js";
import { GrpcClient } from "../protocols/grpc/client.js";
import type { VersionStatistics } from "../statistics/load.js";
import { makeModels } from "../support/fleet/made-model.js";
import { readUntil, until } from "../support/until.js";
import { changed, models } from "./models.js";

const folder = mkdtempSync(join(tmpdir(), "baton-cache-"));
afterAll(() => rmSync(folder, { recursive: true }));

const fleet = useKeyedFleet({
  repository: makeModels(join(folder, "first"), models),
  models: [],
  serving: Object.keys(models),
  gateways: 2,
  grpc: true,
  direct: true,
  env: { BATON_METRICS_PORT: "0", BATON_HISTORY: "false" },
});
const { served, make } = fleet;

const tensor = (name: string, shape: readonly number[], data: readonly number[]) => ({
  name,
  datatype: "FP32",
  shape,
  data,
});

/** A request to a model that sums: B has the same element everywhere. */
const summing = (a: readonly number[], shape: readonly number[] = [1, a.length]) => ({
  inputs: [
    tensor("A", shape, a),
    tensor(
      "B",
      shape,
      a.map(() => 1),
    ),
  ],
});

interface Sent {
  readonly gateway?: 0 | 1;
  readonly headers?: Readonly<Record<string, string>>;
}

async function send(key: Key, model: string, body: object, { gateway = 0, headers = {} }: Sent = {}) {
  const answer = await fetch(`${served.fleet.urls[gateway] ?? ""}/v2/models/${model}/infer`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { ...key.headers, ...headers },
  });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

const answersKept = () => fleet.redis.zcard("cached:all");

/** Sends a request that no answer is there for, and waits until the cache has its answer. */
async function fill(...sending: Parameters<typeof send>): Promise<string> {
  const before = await answersKept();
  const { status, text } = await send(...sending);
  expect([status, text]).toEqual([200, expect.any(String)]);
  await until(async () => (await answersKept()) === before + 1);
  return text;
}

async function statsOf(key: Key, model: string, gateway = 0): Promise<VersionStatistics> {
  const path = `${served.fleet.urls[gateway] ?? ""}/v2/models/${model}/stats`;
  const found = (await (await fetch(path, { headers: key.headers })).json()) as {
    readonly model_stats: readonly VersionStatistics[];
  };
  return found.model_stats[0] ?? expect.fail("the model is served");
}

interface Counts {
  readonly success: number;
  readonly runs: number;
  /** As many as runs, if absent. */
  readonly rows?: number;
  readonly hits: number;
  readonly misses: number;
  /** 0 if absent; the model ran for each. */
  readonly fail?: number;
}

/** The statistics of a model at a gateway come to these counts, and every request is in one. */
async function expectCounts(key: Key, model: string, counts: Counts, gateway = 0): Promise<VersionStatistics> {
  const { success, runs, rows = runs, hits, misses, fail = 0 } = counts;
  const shown = ({ inference_stats: of, inference_count, execution_count }: VersionStatistics) => ({
    success: of.success.count,
    queue: of.queue.count,
    computed: of.compute_infer.count,
    rows: inference_count,
    runs: execution_count,
    hits: of.cache_hit.count,
    misses: of.cache_miss.count,
    fail: of.fail.count,
  });
  const expected = { success, queue: success, computed: runs, rows, runs: runs + fail, hits, misses, fail };
  const isThere = (one: VersionStatistics) => JSON.stringify(shown(one)) === JSON.stringify(expected);
  const last = await readUntil(() => statsOf(key, model, gateway), isThere, { patienceMs: 10_000 });
  expect(shown(last)).toEqual(expected);
  return last;
}

describe("a hit", () => {
  it("has the bytes of the run, at any gateway, and counts as Triton's", async () => {
    const key = await make();
    const body = { id: "mine", ...summing([1, 2.5, 3]) };
    const run = await fill(key, "sums", body);
    expect(run).toContain('"data":[2.0,3.5,4.0]');
    expect((await send(key, "sums", body, { gateway: 1 })).text).toBe(run);
    expect((await send(key, "sums", body)).text).toBe(run);
    for (const gateway of [0, 1]) {
      const counts = { success: 3, runs: 1, hits: 2, misses: 1 };
      const { inference_stats: of, last_inference } = await expectCounts(key, "sums", counts, gateway);
      expect(of.cache_hit.ns).toBeGreaterThan(0);
      expect(of.cache_miss.ns).toBeGreaterThan(0);
      expect(of.success.ns).toBeGreaterThanOrEqual(of.cache_hit.ns + of.queue.ns + of.compute_infer.ns);
      expect(last_inference).toBeGreaterThan(0);
    }
    const { gateways, workers } = served.fleet;
    const members = [...gateways.map(({ member }) => member), ...workers];
    const pages = await Promise.all(members.map(async (member) => scrape(await metricsOf(member))));
    const sum = (family: string) =>
      pages.reduce((all, { samples }) => all + (samples.get(`${family}{model="sums",version="1"}`) ?? 0), 0);
    expect(sum("nv_cache_num_hits_per_model")).toBe(2);
    expect(sum("nv_cache_num_misses_per_model")).toBe(1);
    expect(sum("nv_cache_hit_duration_per_model")).toBeGreaterThan(0);
    expect(sum("nv_cache_miss_duration_per_model")).toBeGreaterThan(0);
    expect(sum("nv_inference_request_success")).toBe(3);
    expect(sum("nv_inference_count")).toBe(1);
    expect(sum("nv_inference_exec_count")).toBe(1);
  });

  it("is for an equal request of the same tenant, whatever order, id and deadline it has", async () => {
    const key = await make({ tenant: "first" });
    const base = summing([1, 2, 3, 4], [2, 2]);
    const only = (...outputs: string[]) => ({ ...base, outputs: outputs.map((name) => ({ name })) });
    const toned = (tone: unknown) => ({ ...base, parameters: { tone } });
    const unequal: readonly (readonly [object, Key])[] = [
      [base, key],
      [summing([1, 2, 3, 4], [4, 1]), key],
      [summing([1, 2, 3, 4], [1, 4]), key],
      [summing([1, 2, 3, 5], [2, 2]), key],
      [only("SUM"), key],
      [only("LESS"), key],
      [toned(1), key],
      [toned("1"), key],
      [base, await make({ tenant: "second" })],
    ];
    const answers: string[] = [];
    for (const [body, own] of unequal) answers.push(await fill(own, "digested", body));
    expect(
      answers.map((text) => (JSON.parse(text) as { outputs: { name: string; shape: number[] }[] }).outputs),
    ).toEqual(
      [
        [2, 2],
        [4, 1],
        [1, 4],
        [2, 2],
        [2, 2],
        [2, 2],
        [2, 2],
        [2, 2],
        [2, 2],
      ].map((shape, i) =>
        (i === 4 ? ["SUM"] : i === 5 ? ["LESS"] : ["SUM", "LESS"]).map((name) =>
          expect.objectContaining({ name, shape }),
        ),
      ),
    );
    for (const [i, [body, own]] of unequal.entries()) {
      expect((await send(own, "digested", body, { gateway: 1 })).text).toBe(answers[i]);
    }
    const equal = [
      { ...base, inputs: base.inputs.toReversed() },
      { ...base, outputs: [{ name: "SUM" }, { name: "LESS" }] },
      { ...base, parameters: { timeout: 5_000_000, priority: 0 } },
    ];
    for (const body of equal) expect((await send(key, "digested", body)).text).toBe(answers[0]);
    const binary = await send(key, "digested", { ...base, parameters: { binary_data_output: true } });
    expect(binary.headers.get("inference-header-content-length")).toMatch(/^\d+$/);
    const other = await make({ tenant: "first" });
    expect((await send(other, "digested", base)).text).toBe(answers[0]);
    await expectCounts(key, "digested", { success: 23, runs: 9, hits: 14, misses: 9 });
  });

  it("over gRPC and with classes is of the same answer", async () => {
    const key = await make();
    const inputs = [tensor("X", [2, 3], [0.5, 3, -1, 7, 7, 0.25])];
    await fill(key, "labelled", { inputs });
    const classes = await send(key, "labelled", {
      inputs,
      outputs: [{ name: "Y", parameters: { classification: 1 } }],
    });
    expect(classes.text).toContain('"data":["3.000000:1:dog","7.000000:0:cat"]');
    const client = new GrpcClient(served.fleet.gateways[1]?.grpc ?? "");
    const { message } = await client.call(
      "ModelInfer",
      {
        model_name: "labelled",
        inputs: [{ name: "X", datatype: "FP32", shape: [2, 3], contents: { fp32_contents: inputs[0]?.data } }],
      },
      { headers: key.headers },
    );
    client.close();
    const [raw] = (message?.["raw_output_contents"] ?? []) as readonly Buffer[];
    expect(raw).toEqual(Buffer.from(Float32Array.from(inputs[0]?.data ?? []).buffer));
    await expectCounts(key, "labelled", { success: 3, rows: 2, runs: 1, hits: 2, misses: 1 });
  });

  it("counts in the limits, the quota and the usage of its owner", async () => {
    const key = await make({ tenant: "spender", limits: { requests_per_second: 0.001, burst: 3 } });
    const admin = await make({ tenant: "spender", scopes: ["admin"] });
    const body = summing([7]);
    await fill(key, "limited", body);
    const left = async () => {
      const { status, headers } = await send(key, "limited", body, { gateway: 1 });
      return [status, headers.get("x-ratelimit-remaining-requests")];
    };
    expect([await left(), await left(), await left()]).toEqual([
      [200, "1"],
      [200, "0"],
      [429, "0"],
    ]);
    const frugal = await make({ tenant: "spender", limits: { quota: { requests: 2, period: "day" } } });
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await send(frugal, "limited", body)).status);
    expect(statuses).toEqual([200, 200, 429]);
    const { data } = (await (await fetch(`${served.url}/v2/usage?group=key`, { headers: admin.headers })).json()) as {
      readonly data: readonly { readonly key: string; readonly requests: number }[];
    };
    const requestsOf = ({ id }: Key) => data.find((row) => row.key === id)?.requests;
    expect([requestsOf(key), requestsOf(frugal)]).toEqual([3, 2]);
    const stranger = await make({ tenant: "spender", models: ["sums"] });
    expect((await send(stranger, "limited", body)).status).toBe(404);
  });
});

describe("every other request runs", () => {
  it("after an error", async () => {
    const key = await make();
    const before = await answersKept();
    const wrong = { inputs: [{ name: "I", datatype: "INT64", shape: [1, 1], data: [4] }] };
    for (let i = 0; i < 3; i++) expect((await send(key, "picks", wrong)).status).toBe(500);
    await expectCounts(key, "picks", { success: 0, runs: 0, fail: 3, hits: 0, misses: 3 });
    expect(await answersKept()).toBe(before);
  });

  it("if it has a key of its own, or its client comes back for the outcome", async () => {
    const key = await make();
    const body = summing([9]);
    await fill(key, "skipped", body);
    for (const name of ["k1", "k2"]) {
      expect((await send(key, "skipped", body, { headers: { "idempotency-key": name } })).status).toBe(200);
    }
    expect((await send(key, "skipped", body, { headers: { prefer: "respond-async" } })).status).toBe(202);
    await expectCounts(key, "skipped", { success: 4, runs: 4, hits: 0, misses: 1 });
  });

  it("if its model has no cache, which then costs it nothing", async () => {
    const key = await make();
    const before = await answersKept();
    const calls = async () =>
      (await scrape(await metricsOf(served.fleet.gateways[0]?.member ?? expect.fail("there is a gateway")))).samples;
    const looked = async () => (await calls()).get('baton_redis_calls_total{call="look-up"}') ?? 0;
    const lookedBefore = await looked();
    for (let i = 0; i < 3; i++) expect((await send(key, "uncached", summing([1]))).status).toBe(200);
    const { inference_stats: of } = await expectCounts(key, "uncached", { success: 3, runs: 3, hits: 0, misses: 0 });
    expect([of.cache_hit, of.cache_miss]).toEqual([
      { count: 0, ns: 0 },
      { count: 0, ns: 0 },
    ]);
    expect([await answersKept(), await looked()]).toEqual([before, lookedBefore]);
    expect((await calls()).has('nv_cache_num_misses_per_model{model="uncached",version="1"}')).toBe(false);
  });

  it("if another file has taken the place of its model's", async () => {
    const key = await make();
    const body = summing([5, 6]);
    expect(await fill(key, "changed", body)).toContain('"data":[6.0,7.0]');
    const second = makeModels(join(folder, "second"), { changed });
    await served.fleet.addWorker({ BATON_MODEL_REPOSITORY: second });
    await served.fleet.workers[0]?.terminate();
    // Each gateway hears by itself that the old worker has gone.
    for (const gateway of [0, 1] as const) {
      await until(async () => (await send(key, "changed", body, { gateway })).text.includes('"data":[5.0,6.0]'));
    }
  });
});
