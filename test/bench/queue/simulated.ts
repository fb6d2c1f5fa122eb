/** A process that runs the heartbeats and views of a large fleet, without models and requests. */
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { serveJob } from "../support/child.js";
import type { Timing } from "../steps/scenarios.js";
import { simulateGateways, simulateWorkers } from "./edition.js";
import { pause } from "./window.js";

export interface SimulatedJob extends Timing {
  readonly url: string;
}

export interface SimulatedResult {
  /** Share of a core that both threads of the simulation took. */
  readonly ownShare: number;
}

const simulate = async (
  { url, warmupMs, measureMs }: SimulatedJob,
  measuring: () => void,
  measured: () => void,
): Promise<SimulatedResult> => {
  await simulateWorkers(url);
  await once(new Worker(new URL(import.meta.url), { workerData: url }), "message");
  await pause(warmupMs);
  measuring();
  const before = process.cpuUsage();
  const startedAt = performance.now();
  await pause(measureMs);
  const { user, system } = process.cpuUsage(before);
  const ownShare = (user + system) / 1_000 / (performance.now() - startedAt);
  measured();
  return { ownShare };
};

if (isMainThread) await serveJob(simulate);
else {
  await simulateGateways(String(workerData));
  parentPort?.postMessage("started", []);
}
