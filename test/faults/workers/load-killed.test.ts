/** Worker processes that die while they load models at a client's wish. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { control, versions } from "../../edition/repository/ask.js";
import { takeSteps } from "../../edition/repository/steps.js";
import { add } from "../../edition/ask.js";
import { freePort } from "../../support/brokers/port.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";
import { nth } from "../pace.js";

describe("a process that is killed while it loads models", () => {
  const running = useFleet({
    models: ["accumulate", "simple"],
    serving: ["accumulate"],
    gateways: 2,
    workerEnv: { BATON_MODEL_CONTROL: "explicit", BATON_LOAD_MODELS: "accumulate" },
  });
  const worker = () => nth(running.fleet.workers, 0);

  /** The processes that the supervisor has started and that have not ended. */
  const processes = () => {
    const { pid } = worker().process;
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.split(" ").filter((child) => child !== "");
  };
  const alone = () => until(() => processes().length === 1);

  /** Kills so many of the processes that load models, each as soon as it is there. */
  async function killComing(count: number): Promise<void> {
    const [serving] = processes();
    for (let i = 0; i < count; i++) {
      const coming = () => processes().filter((child) => child !== serving);
      await until(() => coming().length === 1);
      process.kill(Number(coming()[0]), "SIGKILL");
      await alone();
    }
  }

  it("is started again, and the load ends well without a failed step", async () => {
    const steps = takeSteps(running.url, 4);
    await until(() => steps.least >= 2);
    const load = control(running.url, "load", "simple");
    await killComing(2);
    expect(await load).toEqual({ status: 200, error: "" });
    const before = steps.least;
    await until(() => steps.least >= before + 5);
    expect(await steps.stop()).toEqual([]);
    expect(worker().logged("worker process died")).toBe(2);
  });

  it("is given up if it dies again and again, and the worker keeps its models", async () => {
    await alone();
    expect(await control(running.url, "unload", "simple")).toMatchObject({ status: 200 });
    await alone();
    const steps = takeSteps(running.url, 4, 100);
    const load = control(running.url, "load", "simple");
    await killComing(3);
    const error = "failed to load 'simple', the process that loaded it died";
    expect(await load).toEqual({ status: 400, error });
    expect(await steps.stop()).toEqual([]);
    expect(await versions(running.url, "simple")).toEqual([]);
  });

  it("leaves the wish to the worker that starts after it", async () => {
    expect(await add(running.url, { sequence: 200, value: 4, start: true })).toMatchObject({ output: 4 });
    const load = control(running.url, "load", "simple");
    await until(() => processes().length === 2);
    await worker().restart();
    expect(await load).toEqual({ status: 200, error: "" });
    expect(await add(nth(running.fleet.urls, 1), { sequence: 200, value: 4 })).toMatchObject({ output: 8 });
  });

  it("is started again though the worker before it still has the port of the metrics", async () => {
    await alone();
    const port = await freePort();
    worker().reconfigure({ BATON_METRICS_PORT: String(port) });
    await worker().restart();
    const [before] = processes();
    const unload = control(running.url, "unload", "simple");
    const coming = () => processes().find((child) => child !== before);
    await until(() => coming() !== undefined);
    // Frozen, the worker before keeps the port until its successor has taken its place and died.
    process.kill(Number(before), "SIGSTOP");
    expect(await unload).toMatchObject({ status: 200 });
    const ready = worker().logged("worker ready");
    process.kill(Number(coming()), "SIGKILL");
    await until(() => worker().logged("worker ready") === ready + 1);
    expect(worker().logged("metrics listening")).toBe(1);
    process.kill(Number(before), "SIGCONT");
    await alone();
    expect(processes()).not.toContain(before);
    await until(() => worker().logged("metrics listening") === 2);
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
    expect(await add(running.url, { sequence: 200, value: 4 })).toMatchObject({ output: 12 });
  });
});
