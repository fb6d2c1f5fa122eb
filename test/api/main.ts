/** `node test/api/record.mjs`: records the answers of a fleet, or compares them. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startFleet } from "../support/fleet/fleet.js";
import { root } from "../support/fleet/root.js";
import { batches } from "./cases/batches.js";
import { fleet } from "./cases/fleet.js";
import { inference } from "./cases/inference.js";
import { jobs } from "./cases/jobs.js";
import { methods } from "./cases/methods.js";
import { models } from "./cases/models.js";
import { openai } from "./cases/openai.js";
import { requests } from "./cases/requests.js";
import { schedules } from "./cases/schedules.js";
import { sequences } from "./cases/sequences.js";
import { subscriptions } from "./cases/subscriptions.js";
import { webhooks } from "./cases/webhooks.js";
import { differences, layoutDifferences } from "./recording/compare.js";
import { Recorder, type Recorded } from "./recording/recorder.js";
import { layoutOf } from "./recording/store.js";

const files = { exchanges: join(root, "test/api/recording.jsonl"), layout: join(root, "test/api/layout.txt") };
const cases = {
  models,
  methods,
  inference,
  openai,
  requests,
  sequences,
  jobs,
  schedules,
  webhooks,
  batches,
  subscriptions,
  fleet,
};

/** Small enough that a body above a limit costs little. */
const LIMITS = { BATON_MAX_JSON_BYTES: "65536", BATON_MAX_BODY_BYTES: "131072" };

async function record(): Promise<{ exchanges: Recorded[]; layout: string[] }> {
  const running = await startFleet({
    jobs: 1,
    models: ["simple", "accumulate", "chain", "echo-bytes", "echo-fp16", "picky", "codes", "slow", "tale-gpt"],
    env: { BATON_BUCKETS: "8", BATON_TENANT_HEADER: "x-tenant", BATON_HIBERNATE_DIR: "", ...LIMITS },
    direct: true,
    guarded: true,
  });
  try {
    await running.whenServing();
    const recorder = Recorder.at(running.urls[0] ?? "");
    for (const [name, run] of Object.entries(cases)) await run(recorder.begin(name));
    const redis = running.redis.connect();
    const layout = await layoutOf(redis);
    redis.disconnect();
    return { exchanges: recorder.recorded, layout };
  } finally {
    await running.dispose();
  }
}

const { values: given } = parseArgs({ options: { write: { type: "boolean" }, compare: { type: "boolean" } } });
const { exchanges, layout } = await record();
if (given.write === true) {
  writeFileSync(files.exchanges, exchanges.map((one) => `${JSON.stringify(one)}\n`).join(""));
  writeFileSync(files.layout, layout.map((line) => `${line}\n`).join(""));
  console.log(`${exchanges.length} exchanges and ${layout.length} lines of layout are recorded`);
} else {
  const before = linesOf(files.exchanges).map((line) => JSON.parse(line) as Recorded);
  const found = [...differences(before, exchanges), ...layoutDifferences(linesOf(files.layout), layout)];
  for (const difference of found) console.log(difference);
  console.log(`${exchanges.length} exchanges, ${layout.length} lines of layout, ${found.length} differences`);
  process.exitCode = found.length === 0 ? 0 : 1;
}

function linesOf(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}
