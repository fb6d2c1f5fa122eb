/**
 * `npm run bench` compares the fleet over HTTP with the bare ONNX Runtime loop and with a BullMQ
 * job per inference, on the same models and in the same run. `--quick` takes about a minute, for a
 * first look; `--rounds N` and `--only fleet,bare64,…` narrow the run further. `--only streams`
 * measures generation instead, `--only queue` the queue's cost for Redis, and
 * `--only steps,streams,queue` everything. `--only owners` measures what keys cost, and
 * what a tenant notices of another that floods, which `--only neighbours` measures by itself.
 * `--only observe` measures what metrics, traces and the access log cost, `--only grpc` what gRPC
 * costs beside HTTP, and `--only cache` what an answer of the response cache costs beside a run.
 * `--only batching` measures the batches of 1, 2 and 8 workers beside Triton's rule.
 * `--only stages` says where the time of a step goes, and `--only hot --against FOLDER` measures
 * this build beside the build of another checkout.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startRedis } from "../support/brokers/redis.js";
import { root } from "../support/fleet/root.js";
import type { ReferenceJob } from "./bare/reference.js";
import { runChild } from "./support/child.js";
import { chosen, runRounds } from "./support/rounds.js";
import { figures, printFigures, type Round } from "./figures.js";
import { batchingDetails, batchingNames, batchingScenarios, type BatchingRound } from "./batching/scenarios.js";
import { cacheNames, cacheScenarios, type CacheRound } from "./cache/scenarios.js";
import { grpcNames, grpcScenarios, type GrpcRound } from "./grpc/scenarios.js";
import { hotNames, hotScenarios, type HotRound } from "./hot/scenarios.js";
import { neighboursNames, neighboursScenarios, type NeighboursRound } from "./neighbours/scenarios.js";
import { observeNames, observeScenarios, type ObserveRound } from "./observe/scenarios.js";
import { ownersNames, ownersScenarios, type OwnersRound } from "./owners/scenarios.js";
import { queueDetails } from "./queue/laws.js";
import { queueNames, queueScenarios, type QueueRound } from "./queue/scenarios.js";
import { startBenchFleet } from "./support/fleet.js";
import { describeMachine } from "./support/machine.js";
import { benchRepository, large, tiny, tinyAtOnce } from "./support/models.js";
import { stagesNames, stagesScenarios, type StagesRound } from "./stages/scenarios.js";
import { stepNames, stepScenarios, type StepRound, type Timing } from "./steps/scenarios.js";
import { streamNames, type StreamRound } from "./streams/scenarios.js";
import { openStreams } from "./streams/suite.js";

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string", default: "steps" },
    against: { type: "string" },
  },
});
const timing: Timing = options.quick ? { warmupMs: 500, measureMs: 2_000 } : { warmupMs: 1_500, measureMs: 6_000 };
const takeovers = options.quick ? 1 : 3;
const rounds = Number(options.rounds ?? (options.quick ? 1 : 3));
const names = chosen(options.only.replace(/\bowners\b/, "owners,neighbours"), {
  steps: stepNames,
  stages: stagesNames,
  streams: streamNames,
  queue: queueNames,
  hot: hotNames,
  owners: ownersNames,
  neighbours: neighboursNames,
  observe: observeNames,
  grpc: grpcNames,
  cache: cacheNames,
  batching: batchingNames,
});

// Leaving by `exit` ends every started process, too.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const progress = (line: string) => console.error(`bench: ${line}`);
const startedAt = new Date();
const machine = describeMachine();
const folder = mkdtempSync(join(tmpdir(), "baton-bench-"));

type Closing = (close: () => Promise<unknown>) => void;

/** Closes everything that `measure` opened before the next measurement. */
async function closing<T>(measure: (onClose: Closing) => Promise<T>): Promise<T> {
  const undo: (() => Promise<unknown>)[] = [];
  try {
    return await measure((close) => undo.push(close));
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

/** @returns files of the right outputs, by the model's size */
async function expectedOutputs(): Promise<ReadonlyMap<number, string>> {
  progress("computing the expected answers");
  const expected = new Map<number, string>();
  for (const model of [large, tiny]) {
    const job: ReferenceJob = { model, file: join(folder, `${model.name}.expected`) };
    await runChild(new URL("./bare/reference.js", import.meta.url), job);
    expected.set(model.size, job.file);
  }
  return expected;
}

async function measureSteps(onClose: Closing): Promise<Partial<StepRound>[]> {
  const expected = await expectedOutputs();
  progress("starting the fleet");
  const fleet = await startBenchFleet({
    folder: join(folder, "fleet"),
    repository: benchRepository(join(folder, "models")),
    models: [large, tiny, tinyAtOnce].map(({ name }) => name),
    workers: 1,
    env: { BATON_LOG_LEVEL: "debug" },
  });
  onClose(() => fleet.dispose());
  const bullRedis = await startRedis(join(folder, "bullmq"));
  onClose(() => bullRedis.dispose());
  progress("warm-up");
  const scenarios = await stepScenarios({ fleet, bullRedisPort: bullRedis.port, expected, timing });
  return runRounds(scenarios, { rounds, names: names.steps, progress });
}

async function measureStages(onClose: Closing): Promise<Partial<StagesRound>[]> {
  const expected = await expectedOutputs();
  const scenarios = await stagesScenarios({ folder, expected, timing, onClose });
  return runRounds(scenarios, { rounds, names: names.stages, progress });
}

async function measureStreams(onClose: Closing): Promise<Partial<StreamRound>[]> {
  const scenarios = await openStreams({ folder, names: names.streams, timing, takeovers, progress, onClose });
  return runRounds(scenarios, { rounds, names: names.streams, progress });
}

function measureQueue(): Promise<Partial<QueueRound>[]> {
  const scenarios = queueScenarios({ folder, timing, quick: options.quick, progress });
  return runRounds(scenarios, { rounds, names: names.queue, progress });
}

async function measureHot(onClose: Closing): Promise<Partial<HotRound>[]> {
  const { against } = options;
  if (against === undefined) throw new Error("--only hot needs --against, the folder of another built checkout");
  const expected = await expectedOutputs();
  const scenarios = await hotScenarios({
    folder,
    other: resolve(against),
    expected,
    names: names.hot,
    timing,
    progress,
    onClose,
  });
  return runRounds(scenarios, { rounds, names: names.hot, progress });
}

function measureOwners(): Promise<Partial<OwnersRound>[]> {
  return runRounds(ownersScenarios(), { rounds, names: names.owners, progress });
}

async function measureObserve(onClose: Closing): Promise<Partial<ObserveRound>[]> {
  const expected = names.observe.some((one) => one === "traced" || one === "receivers")
    ? await expectedOutputs()
    : new Map<number, string>();
  const scenarios = await observeScenarios({ folder, expected, names: names.observe, timing, onClose });
  return runRounds(scenarios, { rounds, names: names.observe, progress });
}

async function measureGrpc(onClose: Closing): Promise<Partial<GrpcRound>[]> {
  const expected = await expectedOutputs();
  const scenarios = await grpcScenarios({ folder, expected, timing, onClose });
  return runRounds(scenarios, { rounds, names: names.grpc, progress });
}

async function measureCache(onClose: Closing): Promise<Partial<CacheRound>[]> {
  return runRounds(await cacheScenarios({ folder, timing, onClose }), { rounds, names: names.cache, progress });
}

function measureBatching(): Promise<Partial<BatchingRound>[]> {
  const scenarios = batchingScenarios({ folder, quick: options.quick });
  return runRounds(scenarios, { rounds, names: names.batching, progress });
}

async function measureNeighbours(onClose: Closing): Promise<Partial<NeighboursRound>[]> {
  const scenarios = await neighboursScenarios({ folder, timing, onClose, progress });
  return runRounds(scenarios, { rounds, names: names.neighbours, progress });
}

try {
  const steps = names.steps.length === 0 ? [] : await closing(measureSteps);
  const stages = names.stages.length === 0 ? [] : await closing(measureStages);
  const streams = names.streams.length === 0 ? [] : await closing(measureStreams);
  const queue = names.queue.length === 0 ? [] : await measureQueue();
  const hot = names.hot.length === 0 ? [] : await closing(measureHot);
  const owners = names.owners.length === 0 ? [] : await measureOwners();
  const neighbours = names.neighbours.length === 0 ? [] : await closing(measureNeighbours);
  const observe = names.observe.length === 0 ? [] : await closing(measureObserve);
  const grpc = names.grpc.length === 0 ? [] : await closing(measureGrpc);
  const cache = names.cache.length === 0 ? [] : await closing(measureCache);
  const batching = names.batching.length === 0 ? [] : await measureBatching();
  const measured = Array.from({ length: rounds }, (_, i): Partial<Round> => ({
    ...steps[i],
    ...stages[i],
    ...streams[i],
    ...queue[i],
    ...hot[i],
    ...owners[i],
    ...neighbours[i],
    ...observe[i],
    ...grpc[i],
    ...cache[i],
    ...batching[i],
  }));
  const results = measured.flatMap((round) => Object.values(round));
  const total = (count: "checked" | "wrong") => results.reduce((sum, result) => sum + result[count], 0);
  const [checked, wrong] = [total("checked"), total("wrong")];
  const worked = figures(measured);

  const date = startedAt.toISOString();
  const file = join(root, ".baton/bench", `${date.replace(/[:.]/g, "-")}.json`);
  mkdirSync(join(root, ".baton/bench"), { recursive: true });
  const report = { date, machine, timing, checked, wrong, figures: worked, rounds: measured };
  writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`);

  console.log(
    `\n${date}, ${Object.entries(machine)
      .map(([what, value]) => `${what} ${value}`)
      .join(", ")}`,
  );
  console.log(
    `Redis with appendfsync always; ${timing.measureMs / 1_000} s measured after ${timing.warmupMs / 1_000} s of warm-up\n`,
  );
  console.log(printFigures(worked));
  const details = [...queueDetails(queue), ...batchingDetails(batching)];
  if (details.length > 0) console.log(`\n${details.join("\n")}`);
  console.log(`\n${checked} answers checked, ${wrong} wrong; all values in ${file}`);
  if (wrong > 0) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
