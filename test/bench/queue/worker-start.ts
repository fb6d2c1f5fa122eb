/** The CPU time of each kind of process from its spawn until it is ready. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startFleet } from "../../support/fleet/fleet.js";
import { cpuOf } from "../support/cpu.js";
import { copiesOfAccumulate } from "./models.js";
import type { RowResult } from "./window.js";

/** CPU, in ms. */
export interface WorkerStart extends RowResult {
  /** Of a worker with a single model, and the worker's supervisor. */
  readonly cpuMs: number;
  readonly gatewayMs: number;
  readonly jobsMs: number;
}

const MODEL = "sum";

export async function measureWorkerStart(within: string): Promise<WorkerStart> {
  const folder = mkdtempSync(join(within, "worker-start-"));
  const repository = copiesOfAccumulate(join(folder, "models"), [{ name: MODEL }]);
  const fleet = await startFleet({ gateways: 0, workers: 0, models: [MODEL], repository, direct: true, folder });
  const details: string[] = [];
  const measure = async (program: string, ready: string, env: Readonly<Record<string, string>> = {}) => {
    const startedAt = performance.now();
    const started = fleet.launch(program, env);
    await started.waitForMessage(ready);
    const [cpu] = cpuOf([started.pid]);
    const cpuMs = cpu?.total ?? Number.NaN;
    details.push(`${ready} after ${Math.round(performance.now() - startedAt)} ms, ${cpuMs} ms of CPU`);
    await started.kill();
    return cpuMs;
  };
  try {
    const local = { BATON_HOST: "127.0.0.1", BATON_HTTP_PORT: "0" };
    const gatewayMs = await measure("bundled/gateway/main.js", "gateway listening", local);
    const jobsMs = await measure("bundled/gateway/jobs.js", "jobs ready");
    const cpuMs = await measure("worker/supervisor.js", "worker ready");
    return { cpuMs, gatewayMs, jobsMs, checked: 0, wrong: 0, detail: details.join("; ") };
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
