/**
 * `npm run flat -- --minutes 60` loads a fleet with half of what it can do, and says whether memory
 * and descriptors grow. Each minute's clients come and go, so between two minutes there are none.
 * The exit code is 1 if something grows, or if an answer was wrong.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { ReferenceJob } from "../bare/reference.js";
import { measureFleet } from "../steps/scenarios.js";
import { runChild } from "../support/child.js";
import { startBenchFleet } from "../support/fleet.js";
import { benchRepository, tiny } from "../support/models.js";
import { growth, rendered, type Sample } from "./growth.js";
import { heapsOf, heldBy } from "./held.js";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "60" } } });
const minutes = Number(values.minutes);
if (!Number.isSafeInteger(minutes) || minutes < 6) throw new Error("--minutes is a whole number from 6");

/** A multiple of the sequences of the closed loop, so that few steps wait for the step before. */
const SEQUENCES = 256;
const WARMUP_MS = 1_000;
const MINUTE_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "baton-flat-"));
let dispose: () => Promise<void> = () => Promise.resolve();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
try {
  const job: ReferenceJob = { model: tiny, file: join(folder, "expected") };
  await runChild(new URL("../bare/reference.js", import.meta.url), job);
  const expected = new Map([[tiny.size, job.file]]);
  const fleet = await startBenchFleet({
    folder: join(folder, "fleet"),
    repository: benchRepository(join(folder, "models")),
    models: [tiny.name],
    workers: 2,
    env: {},
    flags: ["--trace-gc"],
  });
  dispose = () => fleet.dispose();
  const load = (measureMs: number, offered?: number) =>
    measureFleet({ fleet, expected, timing: { warmupMs: WARMUP_MS, measureMs } }, tiny, SEQUENCES, offered);
  const half = (await load(MINUTE_MS / 4)).stepsPerSecond / 2;
  console.error(`flat: ${half.toFixed(0)} steps a second for ${minutes} minutes`);

  const samples: Sample[] = [];
  /** How many lines of each process earlier minutes have read. */
  const read = new Map<string, number>();
  /** Numbers of the heaps, in the order in which they came. */
  const numbers = new Map<string, number>();
  const redis = fleet.redis.connect();
  let [checked, wrong] = [0, 0];
  for (let minute = 1; minute <= minutes; minute++) {
    const result = await load(MINUTE_MS - WARMUP_MS, half);
    [checked, wrong] = [checked + result.checked, wrong + result.wrong];
    const memory = await redis.info("memory");
    samples.push({
      "Redis: memory, MB": Number(/used_memory:(\d+)/.exec(memory)?.[1]) / 1e6,
      ...Object.fromEntries(
        Object.entries(fleet.processes).flatMap(([name, { pid, lines }]) => {
          const { residentMb, descriptors } = heldBy(pid);
          const heaps = heapsOf(lines.slice(read.get(name)));
          read.set(name, lines.length);
          for (const heap of heaps.keys()) numbers.set(heap, numbers.get(heap) ?? numbers.size + 1);
          return [
            [`${name}: resident, MB`, residentMb],
            [`${name}: descriptors`, descriptors],
            ...Array.from(heaps, ([heap, mb]) => [
              `${name}: heap ${numbers.get(heap)} after a full collection, MB`,
              mb,
            ]),
          ];
        }),
      ),
      "p50, ms": result.latencyMs.p50,
      "p99, ms": result.latencyMs.p99,
    });
    console.error(`flat: minute ${minute}, ${checked} answers, ${wrong} wrong; ${JSON.stringify(samples.at(-1))}`);
  }
  const rows = growth(samples);
  redis.disconnect();
  console.log(rendered(rows));
  console.log(`\n${checked} answers checked, ${wrong} wrong`);
  if (wrong > 0 || rows.some(({ grows }) => grows)) process.exitCode = 1;
} finally {
  await dispose();
  rmSync(folder, { recursive: true, force: true });
}
