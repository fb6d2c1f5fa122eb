/** A fleet that has something to show on every page of the console. */
import { POISON_INPUT } from "../fixtures/models/chain-reference.js";
import type { History } from "../../gateway/answers.js";
import { accepted, ask, ended, simpleBody } from "../jobs/ask.js";
import type { FleetPlan } from "../support/fleet/fleet.js";
import { askFor } from "../support/streams/ask.js";
import { submitInBackground } from "../support/streams/front-doors.js";
import { until } from "../support/until.js";
import { begin, withHistory } from "./steps.js";

export const sitePlan: FleetPlan = {
  workers: 2,
  jobs: 1,
  models: ["accumulate", "chain", "simple", "pill", "gen-mha"],
  // No sequence ends while the console is looked at.
  configs: { accumulate: withHistory.accumulate.replace("60000000", "3600000000") },
  workerEnv: { BATON_MAX_RUNS_ALONE: "1" },
};

/** The input that ends a worker has this effect on x64 alone. */
const POISON = {
  parameters: { sequence_id: 1, sequence_start: true },
  inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [Number(POISON_INPUT)] }],
};
const HOUR_MS = 3_600_000;

/** @returns the addresses of pages to which no list leads */
export async function furnish(url: string): Promise<readonly string[]> {
  await begin(url, 60, 4);
  await begin(url, "a text", 2, "chain");
  const job = { infer: simpleBody(1) };
  const done = await accepted(url, "simple", { ...job, labels: { kind: "done" } });
  await accepted(url, "simple", { ...job, delay: HOUR_MS });
  await made(`${url}/v2/models/simple/schedules`, { cron: "30 9 * * 1-5", timezone: "UTC", job });
  await made(`${url}/v2/webhooks`, { url: "http://127.0.0.1:9/hook", events: ["job.completed"] });
  const stream = await submitInBackground(url, askFor(20, "a lap", 7));
  await (await fetch(`${url}/v2/requests/${stream}/events`)).text();
  await ended(url, done.id);
  await until(async () => (await history(url)).at.length > 1);
  if (process.arch === "x64") await ended(url, (await accepted(url, "pill", { infer: POISON })).id);
  return [`#/streams/${stream}`, "#/streams?model=gen-mha", "#/models/gen-mha", "#/try/gen-mha", "#/nowhere"];
}

/** A page draws charts from the second point on. */
async function history(url: string): Promise<History> {
  return (await (await fetch(`${url}/v2/fleet/history?minutes=15&models=accumulate`)).json()) as History;
}

async function made(url: string, body: object): Promise<void> {
  const { status, text } = await ask(url, { body });
  if (status !== 201) throw new Error(`${url} answered ${status} ${text}`);
}
