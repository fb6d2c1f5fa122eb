/** Workers whose models clients load and unload, for the whole fleet. */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { noteWish } from "#shared/queue/admission/note-wish.js";
import { settleWish } from "#shared/queue/admission/settle-wish.js";
import { registryKeys } from "#shared/queue/keys.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { GrpcClient, type Message } from "../../protocols/grpc/client.js";
import { root } from "../../support/fleet/root.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { silentLog } from "../../support/silent.js";
import { until } from "../../support/until.js";
import { add, simple } from "../ask.js";
import { control, index, maxBatchSize, versions } from "./ask.js";

/** The configuration of `simple` with another size, as a client of Triton writes it. */
const smaller = JSON.stringify({
  backend: "onnxruntime",
  maxBatchSize: 3,
  input: ["INPUT0", "INPUT1"].map((name) => ({ name, data_type: "TYPE_INT32", dims: ["16"] })),
  output: ["OUTPUT0", "OUTPUT1"].map((name) => ({ name, data_type: "type_int32", dims: [16] })),
});

/** The log of a worker that asks for a roll-out. */
const BEGUN = "the models are loaded anew in another process";

describe("a fleet whose clients load models", () => {
  const running = useFleet({
    models: ["accumulate", "simple"],
    serving: ["simple"],
    gateways: 2,
    grpc: true,
    workerEnv: { BATON_MODEL_CONTROL: "explicit", BATON_LOAD_MODELS: "simple" },
  });
  const urls = () => running.fleet.urls as readonly [string, string];
  const configOf = (model: string) => join(running.fleet.folder, "models", model, "config.pbtxt");
  /** Makes a model unfit to be loaded. @returns mends it */
  const breakModel = (model: string) => {
    const own = readFileSync(configOf(model), "utf8");
    writeFileSync(configOf(model), `${own}\nno_such_field: 1\n`);
    return () => writeFileSync(configOf(model), own);
  };
  const wishFor = (model: string) => running.redis.hget(registryKeys.wish, model);
  const unloaded = { name: "accumulate", state: "UNAVAILABLE", reason: "unloaded" };

  it("serves the models of its settings at first, and lists the others", async () => {
    expect(await index(running.url)).toEqual([
      { name: "simple", version: "1", state: "READY" },
      { name: "accumulate" },
    ]);
    expect(await add(running.url, { sequence: 1, value: 1, start: true })).toMatchObject({ status: 404 });
  });

  it("loads a model for every gateway, and unloads it", async () => {
    const [first, second] = urls();
    expect(await control(first, "load", "accumulate")).toEqual({ status: 200, error: "" });
    expect(await versions(first, "accumulate")).toEqual(["1"]);
    await until(async () => (await versions(second, "accumulate")).length === 1);
    expect(await add(second, { sequence: 1, value: 5, start: true })).toMatchObject({ status: 200, output: 5 });

    expect(await control(second, "unload", "accumulate", { unload_dependents: true })).toMatchObject({ status: 200 });
    expect(await add(second, { sequence: 1, value: 5 })).toMatchObject({ status: 503, code: "model_unavailable" });
    expect(await index(second)).toContainEqual(unloaded);
    await until(async () => (await versions(first, "accumulate")).length === 0);
    expect(await simple(first, 1)).toMatchObject({ status: 200, output: 2 });
  });

  it("goes on with the sequences of a model that is loaded again", async () => {
    expect(await control(running.url, "load", "accumulate", {})).toMatchObject({ status: 200 });
    expect(await add(running.url, { sequence: 1, value: 5 })).toMatchObject({ status: 200, output: 10 });
  });

  it("loads a model again with another configuration, and with its own", async () => {
    const own = await maxBatchSize(running.url, "simple");
    expect(await control(running.url, "load", "simple", { config: smaller })).toEqual({ status: 200, error: "" });
    expect(await maxBatchSize(running.url, "simple")).toBe(3);
    expect(await simple(running.url, 2)).toMatchObject({ status: 200, output: 4 });

    const worker = await running.fleet.addWorker();
    await running.fleet.workers[0]?.terminate();
    expect(await maxBatchSize(running.url, "simple")).toBe(3);
    expect(await simple(running.url, 2)).toMatchObject({ status: 200, output: 4 });
    expect(worker.logged("worker ready")).toBe(1);

    expect(await control(running.url, "load", "simple")).toMatchObject({ status: 200 });
    expect(await maxBatchSize(running.url, "simple")).toBe(own);
  });

  it("says why a model cannot be loaded, and serves what it has served", async () => {
    const mend = breakModel("accumulate");
    const { status, error } = await control(running.url, "load", "accumulate");
    expect([status, error]).toEqual([400, expect.stringMatching(/^failed to load 'accumulate', .*no_such_field/)]);
    expect(await add(running.url, { sequence: 1, value: 1 })).toMatchObject({ status: 200, output: 11 });
    mend();

    const wrong = await control(running.url, "load", "simple", { config: '{"max_batch": 3}' });
    const text =
      "failed to load 'simple', Invalid config override: inference.ModelConfig has no field named \"max_batch\"";
    expect(wrong).toEqual({ status: 400, error: text });
    expect(await control(running.url, "load", "accumulate")).toMatchObject({ status: 200 });
  });

  it("refuses what it cannot do by name", async () => {
    expect(await control(running.url, "load", "nothing")).toEqual({
      status: 400,
      error: "failed to load 'nothing', no repository has this model",
    });
    expect(await control(running.url, "load", ".nothing")).toEqual({
      status: 400,
      error: "failed to load '.nothing', failed to poll from model repository",
    });
    expect(await control(running.url, "load", "simple", { "file:1/model.onnx": "AA==", config: "{}" })).toEqual({
      status: 501,
      error: "the load parameter 'file:1/model.onnx' is not supported: workers load the files of their own repository",
    });
    expect(await control(running.url, "load", "simple", { configs: "{}" })).toEqual({
      status: 400,
      error: "unrecognized load parameter 'configs'.",
    });
    expect(await control(running.url, "load", "simple", { config: {} })).toMatchObject({ status: 400 });
    expect(await control(running.url, "unload", "nothing")).toEqual({ status: 200, error: "" });
  });

  it("loads a model that was copied in, also after a load that has failed, and unloads it", async () => {
    cpSync(join(root, "infra/models/chain"), join(running.fleet.folder, "models", "chain"), { recursive: true });
    const mend = breakModel("chain");
    const { status, error } = await control(running.url, "load", "chain");
    expect([status, error]).toEqual([400, expect.stringMatching(/^failed to load 'chain', .*no_such_field/)]);
    expect(await wishFor("chain")).toBeNull();
    expect(await control(running.url, "unload", "chain")).toEqual({ status: 200, error: "" });
    const idle = { ...unloaded, name: "chain" };
    await until(async () =>
      (await index(running.url)).some((one) => one.name === "chain" && one.reason === idle.reason),
    );
    expect(await control(running.url, "load", "chain")).toMatchObject({ status: 400 });
    mend();
    expect(await control(running.url, "load", "chain")).toEqual({ status: 200, error: "" });
    expect(await versions(running.url, "chain")).toEqual(["1"]);
    expect(await control(running.url, "unload", "chain")).toEqual({ status: 200, error: "" });
    expect(await versions(running.url, "chain")).toEqual([]);
  });

  it("takes back a load that fails after its client has left", async () => {
    const before = await wishFor("accumulate");
    const leaving = new AbortController();
    const url = `${running.url}/v2/repository/models/accumulate/load`;
    const body = JSON.stringify({ parameters: { config: '{"max_batch": 3}' } });
    const asked = fetch(url, { method: "POST", body, signal: leaving.signal });
    await until(async () => (await wishFor("accumulate")) !== before);
    leaving.abort();
    await expect(asked).rejects.toThrow();
    await until(async () => (await wishFor("accumulate")) === before);
  });

  it("goes back to the last load that went well if two fail at once", async () => {
    const before = await wishFor("accumulate");
    const both = await Promise.all(urls().map((url) => control(url, "load", "accumulate", { config: '{"a": 3}' })));
    expect(both.map(({ status }) => status)).toEqual([400, 400]);
    expect(await wishFor("accumulate")).toBe(before);
  });

  it("says why a model cannot be unloaded, and serves it", async () => {
    const before = await wishFor("simple");
    const mend = breakModel("accumulate");
    const { status, error } = await control(running.url, "unload", "simple");
    mend();
    const why = /^failed to unload 'simple', 'accumulate' cannot be loaded any more: .*no_such_field/;
    expect([status, error]).toEqual([400, expect.stringMatching(why)]);
    expect(await simple(running.url, 2)).toMatchObject({ status: 200, output: 4 });
    expect(await wishFor("simple")).toBe(before);
  });

  it("mends a worker that has started with a wish that is then taken back", async () => {
    const { url } = running.fleet.redis;
    const redis = connectRedis({ url, name: "test", log: silentLog });
    try {
      await whenReady(redis, new AbortController().signal);
      const number = await noteWish(redis, "simple", { isLoaded: true, config: "{" }, "bad");
      const newcomer = await running.fleet.addWorker();
      expect(newcomer.logged("model not loaded")).toBe(1);
      await settleWish(redis, { model: "simple", number, isFulfilled: false });
      await until(() => newcomer.logged("worker ready") === 2);
      expect(newcomer.logged("model not loaded")).toBe(1);
      expect(await simple(running.url, 2)).toMatchObject({ status: 200, output: 4 });
    } finally {
      redis.disconnect();
    }
  });

  it("takes two loads at once", async () => {
    const [first, second] = urls();
    const both = await Promise.all([control(first, "load", "simple"), control(second, "load", "accumulate")]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect(await simple(first, 3)).toMatchObject({ status: 200, output: 6 });
  });

  it("takes a load while the process that follows the load before starts", async () => {
    const begun = () => running.fleet.workers.reduce((sum, one) => sum + one.logged(BEGUN), 0);
    const before = begun();
    const first = control(running.url, "load", "simple", { config: smaller });
    await until(() => begun() > before);
    const second = control(running.url, "load", "simple");
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
    expect(await maxBatchSize(running.url, "simple")).toBe(8);
  });

  it("loads and unloads over gRPC", async () => {
    const client = new GrpcClient(running.fleet.gateways[0]?.grpc ?? "");
    const call = async (method: string, asked: Message) => {
      const { status, details } = await client.call(method, asked);
      return [status, details];
    };
    const text = (value: string) => ({ string_param: value });
    const load = (asked: Message) => call("RepositoryModelLoad", { model_name: "simple", ...asked });
    try {
      expect(await load({ parameters: { config: text(smaller) } })).toEqual([0, ""]);
      expect(await maxBatchSize(running.url, "simple")).toBe(3);
      expect(await load({ parameters: { config: { bool_param: true } } })).toEqual([
        3,
        "invalid value type for load parameter 'config', expected string_param.",
      ]);
      expect(await load({ parameters: { other: text("") } })).toEqual([3, "unrecognized load parameter 'other'."]);
      expect(await load({ parameters: { "file:1/model.onnx": { bytes_param: Buffer.from("a") } } })).toEqual([
        12,
        expect.stringContaining("'file:1/model.onnx'"),
      ]);
      expect(await load({ repository_name: "R" })).toEqual([12, "'repository_name' specification is not supported"]);
      const dependents = { unload_dependents: { bool_param: true } };
      expect(await call("RepositoryModelUnload", { model_name: "simple", parameters: dependents })).toEqual([0, ""]);
      expect(await index(running.url)).toContainEqual({ name: "simple", state: "UNAVAILABLE", reason: "unloaded" });
      for (const version of ["", "1"]) {
        const { message } = await client.call("ModelReady", { name: "simple", version });
        expect(message).toMatchObject({ ready: false });
      }
      expect(await call("ModelReady", { name: "nothing" })).toEqual([
        5,
        "Request for unknown model: 'nothing' is not found",
      ]);
    } finally {
      client.close();
    }
  });
});
