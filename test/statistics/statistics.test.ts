/** Statistics agree with the clients of a fleet, and outlive its workers. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil, until } from "../support/until.js";
import { infer, runsOf, settled, simple, statistics, step } from "./load.js";

/** An observer would read reports, too. */
const WORKERS = 2;
const env = { BATON_HISTORY: "false" };
const running = useFleet({ models: ["accumulate", "simple", "picky"], gateways: 2, workers: WORKERS, env });
/** The file of a model of the fleet's repository. */
const fileBytes = (model: string) => statSync(join(root, "infra/models", model, "1/model.onnx")).size;
const none = { count: 0, ns: 0 };
const urls = () => running.fleet.urls;
const someUrl = (i: number) => urls()[i % urls().length] ?? "";
const read = (url: string) => () => settled(url, "accumulate", 100);
const all = async (url: string) => (await statistics(url, "stats")).map(({ name }) => name);

describe("statistics", () => {
  it("have every member from the load on, for each version that is served", async () => {
    const memory = { type: "CPU", id: 0, byte_size: WORKERS * fileBytes("simple") };
    // The gateway may not have heard of all workers yet.
    const found = await readUntil(
      () => statistics(running.url, "stats"),
      (now) => isDeepStrictEqual(now[2]?.memory_usage, [memory]),
    );
    expect(found.map(({ name, version }) => `${name}/${version}`)).toEqual(["accumulate/1", "picky/1", "simple/1"]);
    expect(found[2]).toEqual({
      name: "simple",
      version: "1",
      last_inference: 0,
      inference_count: 0,
      execution_count: 0,
      inference_stats: {
        success: none,
        fail: none,
        queue: none,
        compute_input: none,
        compute_infer: none,
        compute_output: none,
        cache_hit: none,
        cache_miss: none,
      },
      response_stats: {},
      batch_stats: [],
      memory_usage: [memory],
    });
  });

  it("are exact for a mixed load, at every gateway", async () => {
    const since = Date.now();
    const sequences = Array.from({ length: 20 }, (_, id) => id + 1);
    const statuses: number[] = [];
    await Promise.all(
      sequences.map(async (id) => {
        for (let n = 0; n < 5; n++) {
          const flags = { sequence_start: n === 0, sequence_end: n === 4 };
          statuses.push(await infer(someUrl(id + n), "accumulate", step(id, flags)));
        }
      }),
    );
    await Promise.all(sequences.map(async (i) => statuses.push(await infer(someUrl(i), "simple", simple))));
    // A repetition counts nothing, and neither does a request that no worker gets.
    const keyed = { "idempotency-key": "once" };
    for (let i = 0; i < 3; i++) statuses.push(await infer(someUrl(i), "simple", simple, keyed));
    expect(await infer(running.url, "accumulate", step(99))).toBe(400);
    expect(new Set(statuses)).toEqual(new Set([200]));
    for (const url of urls()) {
      const steps = await settled(url, "accumulate", 100);
      const { success, fail, queue, compute_infer: inferred } = steps.inference_stats;
      expect([success.count, fail.count, queue.count, inferred.count]).toEqual([100, 0, 100, 100]);
      expect(steps.inference_count).toBe(100);
      expect(success.ns).toBeGreaterThanOrEqual(queue.ns + inferred.ns);
      expect(steps.execution_count).toBeGreaterThan(0);
      const whole = await readUntil(read(url), (one) => runsOf(one) === one.execution_count);
      expect(runsOf(whole)).toBe(whole.execution_count);
      expect(Math.abs(steps.last_inference - since)).toBeLessThan(60_000);
      const others = await settled(url, "simple", 21);
      expect(others.inference_stats.success.count).toBe(21);
      expect(others.inference_count).toBe(21);
    }
  });

  it("count failures, and batches by their size", async () => {
    const bad = { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1_000_000] }] };
    // A single one may be over within a millisecond, the unit of the admission's time.
    const many = 20;
    const statuses = await Promise.all(Array.from({ length: many }, () => infer(running.url, "picky", bad)));
    expect(new Set(statuses)).toEqual(new Set([500]));
    const read = async () => (await statistics(running.url, "picky/versions/1/stats"))[0];
    const failed = await readUntil(read, (one) => (one?.inference_stats.fail.count ?? 0) === many);
    expect(failed).toMatchObject({ inference_count: 0, inference_stats: { success: none, fail: { count: many } } });
    expect(failed?.inference_stats.fail.ns).toBeGreaterThan(0);
  });

  it("refuse unknown models in Triton's words, and other methods", async () => {
    const refused = async (path: string, method: string) =>
      (await fetch(`${running.url}/v2/models/${path}`, { method })).status;
    const text = async (path: string) => {
      const found = await fetch(`${running.url}/v2/models/${path}`);
      return [found.status, ((await found.json()) as { error: string }).error];
    };
    expect(await text("nobody/stats")).toEqual([400, "requested model 'nobody' is not available"]);
    expect(await text("simple/versions/7/stats")).toEqual([
      400,
      "requested model version is not available for model 'simple'",
    ]);
    expect([await refused("stats", "POST"), await refused("simple/stats", "DELETE")]).toEqual([405, 405]);
  });

  it("take one call of Redis at most, whatever they show", async () => {
    const reads = async () =>
      Number(/cmdstat_hvals:calls=(\d+)/.exec(await running.redis.info("commandstats"))?.[1] ?? 0);
    const before = await reads();
    for (let i = 0; i < 10; i++) await statistics(running.url, "stats");
    // Callers share what one of them has just read. A call has two commands.
    expect(await reads()).toBeLessThanOrEqual(before + 20);
  });

  it("are unavailable while Redis is away, and never zero", async () => {
    const { gatewayRedis } = running.fleet.lines;
    gatewayRedis.blackHole("toServer", "toClient");
    // For a moment callers get what another has just read.
    const codes: (string | undefined)[] = [];
    await until(async () => {
      const answer = await fetch(`${running.url}/v2/models/simple/stats`);
      const { code, model_stats: [stats] = [] } = (await answer.json()) as {
        readonly code?: string;
        readonly model_stats?: readonly { readonly inference_count: number }[];
      };
      if (answer.status === 200) expect(stats?.inference_count).toBeGreaterThan(0);
      codes.push(code);
      return answer.status === 503;
    });
    gatewayRedis.heal();
    expect(codes.at(-1)).toBe("unavailable");
    await until(async () => (await fetch(`${running.url}/v2/models/simple/stats`)).status === 200);
  });
});

describe("a page of sequences", () => {
  it("says how many the model has, whatever the page is about", async () => {
    const list = async (query: string, i = 0) => {
      const answer = await fetch(`${someUrl(i)}/v2/models/accumulate/sequences${query}`);
      return (await answer.json()) as { readonly sequences: readonly object[]; readonly total: number };
    };
    const ids = [701, 702, 703, 811, 812];
    for (const id of ids) {
      expect(await infer(running.url, "accumulate", step(id, { sequence_start: true }))).toBe(200);
    }
    expect(await list("?prefix=70")).toMatchObject({ sequences: [{}, {}, {}], total: 5 });
    expect(await list("?limit=2", 1)).toMatchObject({ sequences: [{}, {}], total: 5 });
    expect(await list("?state=hibernating")).toEqual({ sequences: [], total: 5 });
    for (const id of ids) expect(await infer(running.url, "accumulate", step(id, { sequence_end: true }))).toBe(200);
    expect(await list("", 1)).toEqual({ sequences: [], total: 0 });
  });
});

describe("the statistics of workers that go", () => {
  it("never fall, and count on with those that stay", async () => {
    const before = await settled(running.url, "accumulate", 110);
    const [one] = running.fleet.workers;
    const seen: number[] = [];
    const look = async () => seen.push((await settled(running.url, "accumulate", 0)).inference_count);
    const state = { isGone: false };
    const terminating = (one?.terminate() ?? expect.fail("there is a worker")).finally(() => (state.isGone = true));
    while (!state.isGone) await look();
    await terminating;
    await look();
    expect(Math.min(...seen)).toBe(110);
    for (let i = 0; i < 10; i++) {
      expect(await infer(someUrl(i), "accumulate", step(1_000 + i, { sequence_start: true, sequence_end: true }))).toBe(
        200,
      );
    }
    const after = await settled(running.url, "accumulate", 120);
    expect(after.inference_count).toBe(120);
    expect(after.inference_stats.success.ns).toBeGreaterThan(before.inference_stats.success.ns);
    expect(await all(running.url)).toContain("accumulate");
  });
});
