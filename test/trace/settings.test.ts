/** Operators change the settings of traces and of the log by Triton's paths in a running fleet. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { registryKeys } from "#shared/queue/keys.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { TraceReceiver } from "../support/traces/receiver.js";
import { clientsTrace } from "../support/traces/spans.js";
import { until } from "../support/until.js";

const receiver = await TraceReceiver.start();
afterAll(() => receiver.leave());

const SETTING = "/v2/trace/setting";
const OF_SIMPLE = "/v2/models/simple/trace/setting";
/** How soon every gateway has a change, in ms. */
const TAKEN_OVER_MS = 2_000;
const shown = {
  trace_level: ["TIMESTAMPS"],
  trace_rate: "100",
  trace_count: "-1",
  log_frequency: "0",
  trace_file: "",
  trace_mode: "opentelemetry",
};

interface Answered {
  readonly status: number;
  readonly body: unknown;
}

async function get(url: string, path: string): Promise<Answered> {
  const answer = await fetch(url + path);
  return { status: answer.status, body: await answer.json() };
}

async function post(url: string, path: string, change: unknown): Promise<Answered> {
  const body = typeof change === "string" ? change : JSON.stringify(change);
  const answer = await fetch(url + path, { method: "POST", body });
  return { status: answer.status, body: await answer.json() };
}

describe("the settings of traces", () => {
  const served = useFleet({
    models: ["simple", "gen-mha"],
    gateways: 2,
    direct: true,
    env: { BATON_TRACE_URL: receiver.url },
  });
  let urls: readonly string[] = [];
  beforeAll(() => {
    urls = served.fleet.urls;
  });

  const everywhere = async (path: string, wanted: object) => {
    const since = performance.now();
    await until(async () => {
      const seen = await Promise.all(urls.map((url) => get(url, path)));
      return seen.every(({ body }) => JSON.stringify(body) === JSON.stringify({ ...shown, ...wanted }));
    });
    expect(performance.now() - since).toBeLessThan(TAKEN_OVER_MS);
  };

  const reset = async () => {
    for (const path of [SETTING, OF_SIMPLE]) {
      await post(served.url, path, { trace_level: null, trace_rate: null });
      await everywhere(path, {});
    }
  };

  /** Whether gateways name a trace in the answers to such requests. */
  async function areTraced(headers: Readonly<Record<string, string>>, model = "simple"): Promise<boolean[]> {
    const answers = await Promise.all(
      urls.map((url) => (model === "simple" ? infer(url, headers) : chat(url, headers))),
    );
    expect(answers.map(({ status }) => status)).toEqual(urls.map(() => 200));
    await Promise.all(answers.map((answer) => answer.text()));
    return answers.map((answer) => answer.headers.has("traceresponse"));
  }

  it("are those of the environment at first, as texts", async () => {
    expect(await get(served.url, SETTING)).toEqual({ status: 200, body: shown });
    expect(await get(served.url, OF_SIMPLE)).toEqual({ status: 200, body: shown });
    expect((await get(served.url, "/v2/models/simple/versions/1/trace/setting")).status).toBe(404);
    const server = (await get(served.url, "/v2")).body;
    expect(server).toMatchObject({ extensions: expect.arrayContaining(["trace", "logging"]) as string[] });
  });

  it("hold at every gateway for all models, and null resets them", async () => {
    const changed = { trace_rate: "1" };
    expect(await post(served.url, SETTING, changed)).toEqual({ status: 200, body: { ...shown, ...changed } });
    await everywhere(SETTING, changed);
    await everywhere(OF_SIMPLE, changed);
    expect(await areTraced({})).toEqual([true, true]);
    expect(await areTraced({}, "gen-mha")).toEqual([true, true]);
    await reset();
  });

  it("hold for one model, whichever path names it", async () => {
    await post(served.url, SETTING, { trace_rate: "1" });
    await post(served.url, OF_SIMPLE, { trace_level: ["OFF"], trace_rate: "7" });
    await everywhere(OF_SIMPLE, { trace_level: ["OFF"], trace_rate: "7" });
    await everywhere(SETTING, { trace_rate: "1" });
    expect(await areTraced(clientsTrace().headers)).toEqual([false, false]);
    expect(await areTraced({}, "gen-mha")).toEqual([true, true]);
    await post(served.url, "/v2/models/gen-mha/trace/setting", { trace_level: ["OFF"] });
    await everywhere("/v2/models/gen-mha/trace/setting", { trace_level: ["OFF"], trace_rate: "1" });
    expect(await areTraced({}, "gen-mha")).toEqual([false, false]);
    await post(served.url, "/v2/models/gen-mha/trace/setting", { trace_level: null });
    await reset();
  });

  it("leave the decision to the client with the rate 0", async () => {
    await post(served.url, SETTING, { trace_rate: "0" });
    await everywhere(SETTING, { trace_rate: "0" });
    expect(await areTraced({})).toEqual([false, false]);
    expect(await areTraced(clientsTrace().headers)).toEqual([true, true]);
    await reset();
  });

  it.each([
    [{ trace_level: ["TENSORS"] }, 400, `'trace_level' must be ["TIMESTAMPS"] or ["OFF"]`],
    [{ trace_level: ["TIMESTAMPS", "OFF"] }, 400, `'trace_level' must be ["TIMESTAMPS"] or ["OFF"]`],
    [{ trace_level: [] }, 400, `'trace_level' must be ["TIMESTAMPS"] or ["OFF"]`],
    [{ trace_level: "OFF" }, 400, "Unable to parse 'trace_level': attempt to access JSON non-array as array"],
    [{ trace_rate: 3 }, 400, "Unable to parse 'trace_rate': attempt to access JSON non-string as string"],
    [{ trace_rate: "-3" }, 400, "'trace_rate' must be a whole number from 0 to 999999999"],
    [{ trace_rate: "1", trace_depth: "1" }, 400, "unknown member 'trace_depth' of the body; there are: "],
    [{ trace_count: "5" }, 501, "'trace_count' cannot be changed"],
    [{ trace_mode: "triton" }, 501, "'trace_mode' cannot be changed"],
    [{ trace_file: "a" }, 501, "'trace_file' cannot be changed"],
    ["[", 400, "failed to parse the request JSON buffer: "],
  ])("refuse %j with %i in words", async (change, status, words) => {
    for (const path of [SETTING, OF_SIMPLE]) {
      const answer = await post(served.url, path, change);
      expect(answer).toMatchObject({ status, body: { error: expect.stringContaining(words) as string } });
    }
    expect((await get(served.url, SETTING)).body).toEqual(shown);
  });

  it("are shown and reset for a model that no worker serves any more", async () => {
    const [worker] = served.fleet.workers;
    await post(served.url, OF_SIMPLE, { trace_rate: "7" });
    await everywhere(OF_SIMPLE, { trace_rate: "7" });
    await worker?.terminate();
    // As if the worker had gone long ago: until then its model is known.
    const { redis } = served;
    for (const one of await redis.zrange(registryKeys.gone, "0", "-1")) {
      await redis.zadd(registryKeys.gone, "1", one);
    }
    await redis.set(registryKeys.version, "changed");
    const isGone = async (url: string) => (await fetch(`${url}/v2/models/simple`)).status !== 200;
    await until(async () => (await Promise.all(urls.map(isGone))).every(Boolean));
    try {
      await everywhere(OF_SIMPLE, { trace_rate: "7" });
      const refused = await post(served.url, OF_SIMPLE, { trace_rate: "9" });
      expect(refused).toMatchObject({ status: 404, body: { code: "unknown_model" } });
      const reset = await post(served.url, OF_SIMPLE, { trace_rate: null });
      expect(reset).toEqual({ status: 200, body: shown });
      // Nothing is left to show or to reset.
      for (const ask of [get, (url: string, path: string) => post(url, path, { trace_rate: null })]) {
        expect((await ask(served.url, OF_SIMPLE)).status).toBe(404);
      }
    } finally {
      await worker?.start();
    }
  });

  it("are not there for an unknown model", async () => {
    for (const ask of [get, (url: string, path: string) => post(url, path, { trace_rate: "1" })]) {
      const answer = await ask(served.url, "/v2/models/nothing/trace/setting");
      expect(answer).toMatchObject({ status: 404, body: { code: "unknown_model" } });
    }
  });
});

describe("a gateway without an address for traces", () => {
  const served = useFleet({ models: ["simple"], direct: true });

  it("shows that traces are off, and refuses to change that", async () => {
    expect((await get(served.url, SETTING)).body).toEqual({ ...shown, trace_level: ["OFF"] });
    // Triton's client asks for no change if its caller names none.
    expect((await post(served.url, SETTING, {})).body).toEqual({ ...shown, trace_level: ["OFF"] });
    for (const change of [{ trace_level: ["TIMESTAMPS"] }, { trace_rate: null }]) {
      expect(await post(served.url, OF_SIMPLE, change)).toEqual({
        status: 400,
        body: { error: "tracing is not set up", code: "invalid_argument" },
      });
    }
    expect(await post(served.url, SETTING, { trace_level: ["TENSORS"] })).toMatchObject({ status: 400 });
  });

  it("shows the level of its log, and changes it", async () => {
    const log = { log_file: "", log_info: true, log_warning: true, log_error: true, log_format: "default" };
    const quiet = { ...log, log_verbose_level: 0 };
    expect(await get(served.url, "/v2/logging")).toEqual({ status: 200, body: quiet });
    const loud = { ...log, log_verbose_level: 1 };
    expect(await post(served.url, "/v2/logging", { log_verbose_level: 3 })).toEqual({ status: 200, body: loud });
    expect(await post(served.url, "/v2/logging", loud)).toEqual({ status: 200, body: loud });
    expect(await post(served.url, "/v2/logging", { log_verbose_level: 0 })).toEqual({ status: 200, body: quiet });
  });

  it.each([
    [{ log_file: "/tmp/log" }, 501, "'log_file' cannot be changed"],
    [{ log_info: false }, 501, "'log_info' cannot be changed"],
    [{ log_format: "ISO8601" }, 501, "'log_format' cannot be changed"],
    [{ log_verbose_level: -1 }, 400, "Unable to parse 'log_verbose_level'"],
    [{ log_verbose_level: "1" }, 400, "Unable to parse 'log_verbose_level'"],
    [{ log_info: 1 }, 400, "Unable to parse 'log_info'"],
    [{ verbose: 1 }, 400, "unknown member 'verbose' of the body"],
  ])("refuses %j for its log with %i in words", async (change, status, words) => {
    const answer = await post(served.url, "/v2/logging", change);
    expect(answer).toMatchObject({ status, body: { error: expect.stringContaining(words) as string } });
  });
});

function infer(url: string, headers: Readonly<Record<string, string>>): Promise<Response> {
  const inputs = ["INPUT0", "INPUT1"].map((name) => ({
    name,
    datatype: "INT32",
    shape: [1, 16],
    data: Array(16).fill(1),
  }));
  return fetch(`${url}/v2/models/simple/infer`, { method: "POST", body: JSON.stringify({ inputs }), headers });
}

function chat(url: string, headers: Readonly<Record<string, string>>): Promise<Response> {
  const body = { model: "gen-mha", messages: [{ role: "user", content: "hello" }], max_tokens: 2 };
  return fetch(`${url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body), headers });
}
