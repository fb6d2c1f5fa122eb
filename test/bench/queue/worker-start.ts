/** What the start of a worker costs, with one model. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startFleet } from "../../support/fleet/fleet.js";
import { cpuOf } from "../support/cpu.js";
import { copiesOfAccumulate } from "./models.js";
import type { RowResult } from "./window.js";

export interface WorkerStart extends RowResult {
  /** CPU of the worker and its supervisor until the worker is ready, in ms. */
  readonly cpuMs: number;
}

const MODEL = "sum";

export async function measureWorkerStart(within: string): Promise<WorkerStart> {
  const folder = mkdtempSync(join(within, "worker-start-"));
  const repository = copiesOfAccumulate(join(folder, "models"), [{ name: MODEL }]);
  const fleet = await startFleet({ gateways: 0, workers: 0, models: [MODEL], repository, direct: true, folder });
  try {
    const startedAt = performance.now();
    const { pid } = (await fleet.addWorker()).process;
    const [cpu] = cpuOf([pid]);
    const ms = Math.round(performance.now() - startedAt);
    return { cpuMs: cpu?.total ?? Number.NaN, checked: 0, wrong: 0, detail: `ready after ${ms} ms` };
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
