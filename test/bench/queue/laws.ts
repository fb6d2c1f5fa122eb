/** The figures of the queue's cost, each with its limit. */
import type { Wanted } from "../support/statistics.js";
import { simulated } from "./edition.js";
import { queueNames, type QueueRound } from "./scenarios.js";
import type { StepCost } from "./steps.js";

type Figures = readonly Wanted<QueueRound>[];

/**
 * Whether the simulated fleet is as large as the limit's. A smaller fleet can only miss the limit,
 * not meet it.
 */
const whole = simulated.workers >= 1_000 && simulated.gateways >= 100;

export const queueFigures: Figures = [
  ...stepFigures("a step, tensors of 4 bytes", { inner: 3, scriptBytes: 300, redisUs: 55 }, ({ stepCost }) => stepCost),
  ...stepFigures("a step, tensors of 4 bytes, of a key with every limit", {}, ({ limitedStepCost }) => limitedStepCost),
  {
    name: "  CPU of Redis, µs more than without",
    most: 3,
    of: ({ stepCost, limitedStepCost }) => stepCost && limitedStepCost && limitedStepCost.redisUs - stepCost.redisUs,
  },
  ...stepFigures("a step, state 2×128", { inner: 3, redisUs: 55 }, ({ smallStepCost }) => smallStepCost),
  ...stepFigures("a step, state 2×1024", { inner: 3, redisUs: 90 }, ({ largeStepCost }) => largeStepCost),
  { name: "a token, 64 streams: CPU of Redis, µs", most: 8, of: ({ tokenCost }) => tokenCost?.redisUs },
  { name: "  commands, scripts' calls aside", of: ({ tokenCost }) => tokenCost?.inner },
  {
    name: "an idle worker, 10 models × 16 queues: commands/s",
    most: 30,
    of: ({ idleWorker }) => idleWorker?.callsPerSecond,
  },
  { name: "  connections", of: ({ idleWorker }) => idleWorker?.connections },
  { name: "  CPU of Redis, %", of: ({ idleWorker }) => idleWorker?.redisPercent },
  { name: "16 workers that hold 2048 steps: CPU of Redis, %", most: 3, of: ({ heldSteps }) => heldSteps?.redisPercent },
  { name: "  commands/s", of: ({ heldSteps }) => heldSteps?.callsPerSecond },
  {
    name: "a gateway with 2000 open requests: commands/s",
    most: 50,
    of: ({ openRequests }) => openRequests?.callsPerSecond,
  },
  { name: "a sequence that expires: CPU of Redis, µs", most: 8, of: ({ idleSequences }) => idleSequences?.reapUs },
  {
    name: "  all of them idle: CPU of Redis, % more",
    most: 1,
    goal: "nil (≤ 1)",
    of: ({ idleSequences }) => idleSequences?.backgroundPercent,
  },
  { name: "  bytes each, beside the state", most: 600, of: ({ idleSequences }) => idleSequences?.bytesEach },
  {
    name: `liveness, ${simulated.workers} workers, ${simulated.gateways} gateways: CPU of Redis, %`,
    most: 10,
    goal: "≤ 10 with 1000 and 100",
    canMeet: whole,
    of: ({ liveness }) => liveness?.redisPercent,
  },
  { name: "  commands/s", of: ({ liveness }) => liveness?.callsPerSecond },
  { name: "a look at 100 models × 16 queues: CPU of Redis, µs", most: 100, of: ({ wideRead }) => wideRead?.redisUs },
  {
    name: "one of 4 workers dead: longest step, ms",
    goal: "lease + 200 = 1200",
    of: ({ deadWorker }) => deadWorker?.longestMs,
  },
  {
    name: "100,000 keys of 10,000 tenants (--quick: a tenth): bytes of Redis each",
    most: 500,
    of: ({ manyKeys }) => manyKeys?.bytesEach,
  },
  { name: "  a gateway that has seen a fifth of them: MB more", most: 50, of: ({ manyKeys }) => manyKeys?.gatewayMb },
  { name: "  first use of a key: median, ms", most: 5, of: ({ manyKeys }) => manyKeys?.firstUseMs },
  { name: "  a known key: median, ms", of: ({ manyKeys }) => manyKeys?.knownMs },
  { name: "  a page of 100 keys: median, ms", most: 20, of: ({ manyKeys }) => manyKeys?.pageMs },
  { name: "a worker's start, one model: CPU, ms", most: 800, of: ({ workerStart }) => workerStart?.cpuMs },
  { name: "a gateway's start: CPU, ms", most: 300, of: ({ workerStart }) => workerStart?.gatewayMs },
  { name: "the start of a jobs process: CPU, ms", most: 400, of: ({ workerStart }) => workerStart?.jobsMs },
  {
    name: "a step with 64 workers (--quick: 16): CPU of Redis, % of that with 4",
    most: 120,
    of: ({ manyWorkers }) => manyWorkers?.percent,
  },
  { name: "  with 4 workers, beyond the idle fleet, µs", of: ({ manyWorkers }) => manyWorkers?.fewUs },
  { name: "  with 64 (--quick: 16) workers, µs", of: ({ manyWorkers }) => manyWorkers?.manyUs },
  { name: "  with 4 workers, with the idle fleet, µs", of: ({ manyWorkers }) => manyWorkers?.fewWholeUs },
  { name: "  with 64 (--quick: 16) workers, µs", of: ({ manyWorkers }) => manyWorkers?.manyWholeUs },
  { name: "  the idle fleet of 4, % of a core", of: ({ manyWorkers }) => manyWorkers?.fewIdle },
  { name: "  of 64 (--quick: 16)", of: ({ manyWorkers }) => manyWorkers?.manyIdle },
];

type StepLaws = Partial<Record<"inner" | "scriptBytes" | "redisUs", number>>;

function stepFigures(what: string, laws: StepLaws, of: (round: Partial<QueueRound>) => StepCost | undefined): Figures {
  const figure = (name: string, which: keyof StepLaws): Wanted<QueueRound> => {
    const most = laws[which];
    return { name, ...(most !== undefined && { most }), of: (round) => of(round)?.[which] };
  };
  return [
    figure(`${what}: CPU of Redis, µs`, "redisUs"),
    figure("  commands, scripts' calls aside", "inner"),
    figure("  bytes through Lua beyond the tensors", "scriptBytes"),
    { name: "  bytes to Redis beyond the tensors", of: (round) => of(round)?.inputBytes },
    { name: "  bytes appended to Redis' file", of: (round) => of(round)?.fileBytes },
    { name: "  mean batch", goal: "32 to 64", of: (round) => of(round)?.meanBatch },
  ];
}

/** The details behind each row's figures, from the row's last round. */
export function queueDetails(rounds: readonly Partial<QueueRound>[]): string[] {
  return queueNames.flatMap((name) => {
    const last = rounds.findLast((round) => round[name] !== undefined)?.[name];
    return last === undefined ? [] : [`${name}: ${last.detail}`];
  });
}
