/**
 * `npm run chaos` breaks a real fleet by a seeded plan and says whether the fleet lost, doubled or
 * reordered a request. If so, the exit code is 1.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../support/fleet/root.js";
import { clusterStore } from "../support/fleet/cluster-store.js";
import { sentinelStore } from "../support/fleet/sentinel-store.js";
import { doses } from "./plan.js";
import { runChaos } from "./run.js";
import { renderReport, type ChaosReport } from "./report.js";

const usage = `npm run chaos -- [options]
  --seed N          what is drawn from it is had again with it (default: random)
  --runs N          how many runs, with seeds N, N+1, … (1)
  --dose NAME       ${Object.keys(doses).join(" or ")} (minimum)
  --duration S      seconds over which faults and load are spread (45; short: 15)
  --sequences N     (60; short: 24)
  --steps N         per sequence (40; short: 15)
  --workers N       (4; short: 3)
  --gateways N      (2)
  --lease MS        (1000)
  --buckets N       over how many buckets requests are spread (the fleet's default)
  --tenants N       how many tenants share the fleet (one, of which nothing is said)
  --tenant-header NAME  in which header they say so (x-tenant)
  --streams N       how many streams of tokens run at a time beside the sequences (none)
  --cluster         over a Redis Cluster whose masters have replicas, in the mode \`replicated\`
  --sentinel        over a primary with replicas and Sentinels, in the mode \`replicated\`
  --roll            second versions of models are rolled out in the middle: the workers start anew
  --poll            the same, but the workers find the versions in the repository that they poll
  --out FOLDER      where logs, history and report go (.baton/chaos)
  --quiet           print only the summary`;

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    runs: { type: "string", default: "1" },
    dose: { type: "string", default: "minimum" },
    duration: { type: "string" },
    sequences: { type: "string" },
    steps: { type: "string" },
    workers: { type: "string" },
    gateways: { type: "string", default: "2" },
    lease: { type: "string", default: "1000" },
    buckets: { type: "string" },
    tenants: { type: "string" },
    "tenant-header": { type: "string", default: "x-tenant" },
    streams: { type: "string" },
    cluster: { type: "boolean", default: false },
    sentinel: { type: "boolean", default: false },
    roll: { type: "boolean", default: false },
    poll: { type: "boolean", default: false },
    out: { type: "string", default: join(root, ".baton", "chaos") },
    quiet: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

class UsageError extends Error {}

function whole(name: string, given: string | undefined, fallback: number): number {
  const value = given === undefined ? fallback : Number(given);
  if (!Number.isSafeInteger(value) || value <= 0)
    throw new UsageError(`--${name} must be a whole number above 0, not ${given}`);
  return value;
}

function isDose(name: string): name is keyof typeof doses {
  return Object.hasOwn(doses, name);
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  if (!isDose(values.dose)) throw new UsageError(`--dose must be one of ${Object.keys(doses).join(", ")}`);
  if (values.cluster && values.sentinel) throw new UsageError("--cluster and --sentinel are two different stores");
  if (values.roll && values.poll) throw new UsageError("--roll and --poll are two different roll-outs");
  const short = values.dose === "short";
  const firstSeed = whole("seed", values.seed, 1 + Math.floor(Math.random() * 1_000_000));
  const settings = {
    dose: doses[values.dose],
    durationMs: whole("duration", values.duration, short ? 15 : 45) * 1_000,
    sequences: whole("sequences", values.sequences, short ? 24 : 60),
    steps: whole("steps", values.steps, short ? 15 : 40),
    workers: whole("workers", values.workers, short ? 3 : 4),
    gateways: whole("gateways", values.gateways, 2),
    leaseMs: whole("lease", values.lease, 1_000),
    ...((values.roll || values.poll) && ({ rolled: values.poll ? "poll" : "restart" } as const)),
    ...(values.streams === undefined ? {} : { streams: whole("streams", values.streams, 1) }),
    ...(values.buckets === undefined ? {} : { buckets: whole("buckets", values.buckets, 1) }),
    ...(values.tenants === undefined
      ? {}
      : { tenants: { count: whole("tenants", values.tenants, 1), header: values["tenant-header"] } }),
  };
  let failed = 0;
  for (let seed = firstSeed; seed < firstSeed + whole("runs", values.runs, 1); seed++) {
    const folder = join(values.out, `seed-${seed}-${Date.now()}`);
    mkdirSync(folder, { recursive: true });
    const note = (line: string) => {
      if (!values.quiet) console.log(line);
    };
    const store = values.cluster ? await clusterStore() : values.sentinel ? await sentinelStore() : undefined;
    const report = await runChaos({ ...settings, ...(store && { store }), seed, folder, note });
    save(folder, report);
    console.log(`${renderReport(report)}\n  kept in ${folder}`);
    if (report.violations.length + report.shortfalls.length > 0) failed += 1;
  }
  return failed === 0 ? 0 : 1;
}

function save(folder: string, { history, ...report }: ChaosReport): void {
  history.save(join(folder, "history.jsonl"));
  writeFileSync(join(folder, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
}

// `exit` ends every started process, too; see test/support/brokers/process.ts.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
