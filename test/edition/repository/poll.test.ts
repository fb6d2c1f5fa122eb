/** Workers that poll their repository: a new version is served without a failed step. */
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freePort } from "../../support/brokers/port.js";
import { configWith, ownConfig } from "../../support/fleet/repository.js";
import { root } from "../../support/fleet/root.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";
import { add } from "../ask.js";
import { control, index, maxBatchSize, versions } from "./ask.js";
import { takeSteps } from "./steps.js";

describe("a fleet that polls", () => {
  const running = useFleet({
    models: ["accumulate", "simple"],
    configs: { accumulate: `${ownConfig("accumulate")}\nversion_policy: { all {} }` },
    workerEnv: { BATON_MODEL_CONTROL: "poll", BATON_REPOSITORY_POLL_MS: "200" },
  });
  const folder = (...names: string[]) => join(running.fleet.folder, "models", "accumulate", ...names);
  const hasVersions = (...wanted: string[]) =>
    until(async () => (await versions(running.url, "accumulate")).join() === wanted.join());

  it("serves a new version while sequences of the old one go on", async () => {
    const steps = takeSteps(running.url, 8);
    await until(() => steps.least >= 3);
    cpSync(join(root, "test/fixtures/versions/accumulate/2"), folder("2"), { recursive: true });
    await hasVersions("1", "2");
    const before = steps.least;
    // A newcomer has joined, and the worker before it has gone.
    await until(() => running.fleet.workers[0]?.logged("stopping") === 1);
    await until(() => steps.least >= before + 10);
    expect(await steps.stop()).toEqual([]);
    expect(await add(running.url, { sequence: 100, value: 1, start: true })).toMatchObject({
      status: 200,
      version: "2",
    });
  });

  it("goes on with the old model if the new one cannot be loaded, and says why", async () => {
    const steps = takeSteps(running.url, 4, 200);
    const config = readFileSync(folder("config.pbtxt"), "utf8");
    writeFileSync(folder("config.pbtxt"), `${config}\nno_such_field: 1\n`);
    const reason = () => index(running.url).then((models) => models.find(({ name }) => name === "accumulate")?.reason);
    await until(async () => (await reason())?.includes("no_such_field") === true);
    const before = steps.least;
    await until(() => steps.least >= before + 5);
    expect(await index(running.url)).toContainEqual({ name: "simple", version: "1", state: "READY" });
    expect(running.fleet.workers[0]?.logged("the models could not be loaded anew; the worker goes on")).toBe(1);

    writeFileSync(folder("config.pbtxt"), config);
    rmSync(folder("2"), { recursive: true });
    await hasVersions("1");
    expect(await reason()).toBeUndefined();
    await steps.stop();
  });

  it("goes on with all models if the repository is empty, as when a volume is away", async () => {
    const away = join(running.fleet.folder, "away");
    mkdirSync(away);
    const move = (from: string, to: string) => {
      for (const name of ["accumulate", "simple"]) renameSync(join(from, name), join(to, name));
    };
    const reasons = async () => (await index(running.url)).map(({ reason }) => reason);
    move(folder(".."), away);
    const why = "the repositories hold no model at all";
    await until(async () => (await reasons()).filter((reason) => reason === why).length === 2);
    expect(await add(running.url, { sequence: 300, value: 2, start: true })).toMatchObject({ output: 2 });
    move(away, folder(".."));
    await until(async () => (await reasons()).every((reason) => reason === undefined));
    expect(await add(running.url, { sequence: 300, value: 2 })).toMatchObject({ output: 4 });
  });

  it("keeps the port of a worker's metrics", async () => {
    const port = await freePort();
    const worker = await running.fleet.addWorker({ BATON_METRICS_PORT: String(port) });
    writeFileSync(folder("config.pbtxt"), `${readFileSync(folder("config.pbtxt"), "utf8")}\n# as before\n`);
    await until(() => worker.logged("metrics listening") === 2);
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
    expect(worker.logged("worker process died")).toBe(0);
  });

  it("refuses to load and to unload in Triton's words", async () => {
    const error = "explicit model load / unload is not allowed if polling is enabled";
    expect(await control(running.url, "load", "simple")).toEqual({ status: 503, error });
    expect(await control(running.url, "unload", "simple")).toEqual({ status: 503, error });
  });
});

describe("a larger fleet that polls", () => {
  const running = useFleet({
    models: ["accumulate"],
    configs: { accumulate: configWith("accumulate", "takes_states_of", "*") },
    gateways: 2,
    workers: 2,
    workerEnv: { BATON_MODEL_CONTROL: "poll", BATON_REPOSITORY_POLL_MS: "200" },
  });

  it("goes on with its sequences under other files of their version", async () => {
    const [first = "", second = ""] = running.fleet.urls;
    const steps = [takeSteps(first, 4), takeSteps(second, 4, 50)];
    await until(() => steps.every(({ least }) => least >= 3));
    const config = join(running.fleet.folder, "models", "accumulate", "config.pbtxt");
    writeFileSync(config, readFileSync(config, "utf8").replace("max_batch_size: 32", "max_batch_size: 7"));
    for (const url of running.fleet.urls) await until(async () => (await maxBatchSize(url, "accumulate")) === 7);
    await until(() => running.fleet.workers.every((worker) => worker.logged("stopping") === 1));
    const before = Math.max(...steps.map(({ least }) => least));
    await until(() => steps.every(({ least }) => least >= before + 10));
    expect(await Promise.all(steps.map((one) => one.stop()))).toEqual([[], []]);
  });
});
