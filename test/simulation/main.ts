/**
 * `npm run simulate` runs the queue loops of a fleet in simulated time, run after run, and reports
 * whether a run lost, doubled or reordered steps. Its exit code is then 1.
 */
import { parseArgs } from "node:util";
import { faults, type Fault } from "./faults.js";
import { startOwnRedis } from "./redis.js";
import { rendered } from "./report.js";
import { simulate } from "./run.js";

const usage = `npm run simulate -- [options]
  --seed N        the first seed (default: random)
  --runs N        how many runs, with seeds N, N+1, … (100)
  --fault NAME    puts a fault in by hand, and ends at the first run that finds it:
                  ${Object.keys(faults).join("\n                  ")}
  --long-scripts  no step takes a short script
  --all           goes on after a run with violations
  --trace         prints the whole trace of each run`;

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    runs: { type: "string", default: "100" },
    fault: { type: "string" },
    "long-scripts": { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    trace: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

class UsageError extends Error {}

function whole(name: string, given: string): number {
  const value = Number(given);
  if (!Number.isSafeInteger(value) || value <= 0) throw new UsageError(`--${name} must be a whole number above 0`);
  return value;
}

function faultNamed(name: string | undefined): Fault | undefined {
  if (name === undefined) return undefined;
  const found = Object.hasOwn(faults, name) ? faults[name] : undefined;
  if (found === undefined) throw new UsageError(`there is no fault '${name}'`);
  return found;
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const fault = faultNamed(values.fault);
  const shortScripts = values["long-scripts"] ? false : undefined;
  const first = whole("seed", values.seed ?? String(1 + Math.floor(Math.random() * 1_000_000)));
  const runs = whole("runs", values.runs);
  const own = await startOwnRedis();
  const begun = performance.now();
  let [failed, simulatedMs, requests, done] = [0, 0, 0, 0];
  try {
    for (let seed = first; seed < first + runs; seed++) {
      const report = await simulate(seed, own.redis, { fault, shortScripts });
      done++;
      simulatedMs += report.simulatedMs;
      requests += report.requests;
      if (values.trace) console.log(report.trace.last().join("\n"));
      if (done % 100 === 0 && done < runs) console.log(`${done} runs, ${failed} with violations`);
      if (report.violations.length === 0) continue;
      failed++;
      console.log(rendered(report));
      if (!values.all) break;
    }
  } finally {
    await own.dispose();
  }
  const seconds = (performance.now() - begun) / 1_000;
  console.log(
    `${done} runs from seed ${first}, ${failed} with violations; ${requests} requests in ` +
      `${Math.round(simulatedMs / 1_000)} simulated s; ${seconds.toFixed(1)} s, ${Math.round((done * 3_600) / seconds)} runs an hour`,
  );
  return failed === 0 ? 0 : 1;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
