/** Requests that are queued or under way while a model is unloaded, or loaded again. */
import { describe, expect, it } from "vitest";
import { configWith } from "../../support/fleet/repository.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";
import { simple, type Said } from "../ask.js";
import { control, maxBatchSize } from "./ask.js";

/** Long enough that most of the requests below still wait when the new worker is there. */
const slow = configWith("simple", "execute_delay_ms", "400").replace(/max_batch_size: \d+/, "max_batch_size: 1");
/** As a client writes `infra/models/simple`, but for its batches. */
const quick = JSON.stringify({
  max_batch_size: 5,
  input: ["INPUT0", "INPUT1"].map((name) => ({ name, data_type: "TYPE_INT32", dims: [16] })),
  output: ["OUTPUT0", "OUTPUT1"].map((name) => ({ name, data_type: "TYPE_INT32", dims: [16] })),
});

describe("a model under load", () => {
  const running = useFleet({
    models: ["simple", "accumulate"],
    configs: { simple: slow },
    workerEnv: { BATON_MODEL_CONTROL: "explicit", BATON_LOAD_MODELS: "*" },
  });

  it("answers all requests that are queued when it is unloaded", async () => {
    const asked = Array.from({ length: 12 }, (_, i) => simple(running.url, i));
    const waiting = async () => (await running.redis.hget("load:all", "m:simple")) ?? "0";
    await until(async () => Number.parseInt(await waiting()) >= 8);
    expect(await control(running.url, "unload", "simple")).toMatchObject({ status: 200 });
    const said = await Promise.all(asked);
    expect(said.map(({ status, output }) => [status, output])).toEqual(said.map((_, i) => [200, 2 * i]));
    expect(await simple(running.url, 1)).toMatchObject({ status: 503, code: "model_unavailable" });
  });

  it("answers all requests while it is loaded again with another configuration", async () => {
    expect(await control(running.url, "load", "simple")).toMatchObject({ status: 200 });
    const said: Said[] = [];
    const ending = new AbortController();
    const clients = Array.from({ length: 4 }, async (_, i) => {
      while (!ending.signal.aborted) said.push(await simple(running.url, i));
    });
    await until(() => said.length >= 4);
    expect(await control(running.url, "load", "simple", { config: quick })).toEqual({ status: 200, error: "" });
    expect(await maxBatchSize(running.url, "simple")).toBe(5);
    const before = said.length;
    await until(() => said.length >= before + 40);
    ending.abort();
    await Promise.all(clients);
    expect(said.filter(({ status }) => status !== 200)).toEqual([]);
  });
});
