/**
 * The figures that count, computed from the rounds: a median, with every round's own value beside
 * it.
 */
import { parts } from "./support/fleet.js";
import { median, ratio, type Wanted } from "./support/statistics.js";
import { OFFERED, type FleetResult, type StepRound } from "./steps/scenarios.js";
import { batchingFigures, type BatchingRound } from "./batching/scenarios.js";
import { cacheFigures, type CacheRound } from "./cache/scenarios.js";
import { grpcFigures, type GrpcRound } from "./grpc/scenarios.js";
import { hotFigures } from "./hot/figures.js";
import type { HotRound } from "./hot/scenarios.js";
import { neighboursFigures, type NeighboursRound } from "./neighbours/scenarios.js";
import { observeFigures, type ObserveRound } from "./observe/scenarios.js";
import { ownersFigures, type OwnersRound } from "./owners/scenarios.js";
import { queueFigures } from "./queue/laws.js";
import type { QueueRound } from "./queue/scenarios.js";
import { streamFigures } from "./streams/figures.js";
import { stagesFigures, type StagesRound } from "./stages/scenarios.js";
import type { StreamRound } from "./streams/scenarios.js";

export interface Figure {
  readonly name: string;
  readonly goal: string;
  /** Undefined if the figure has no limit, or if the measurement cannot tell. */
  readonly met: boolean | undefined;
  readonly median: number;
  /** A value per round. A ratio divides values of the same round. */
  readonly values: readonly number[];
}

/** CPU of the servers, without the load generator. */
function serverCpuUs({ cpuUs }: FleetResult): number {
  return parts.reduce((sum, part) => sum + cpuUs[part], 0);
}

const stepFigures: readonly Wanted<StepRound>[] = [
  { name: "lstm-1024, 128 sequences, HTTP binary: steps/s", of: ({ fleet }) => fleet?.stepsPerSecond },
  { name: "  mean batch", of: ({ fleet }) => fleet?.meanBatch },
  { name: "  model busy, share of time", of: ({ fleet }) => fleet?.modelBusy },
  { name: "  model, ms per batch", of: ({ fleet }) => fleet?.runMs },
  { name: "  latency p50, ms", of: ({ fleet }) => fleet?.latencyMs.p50 },
  { name: "  latency p95, ms", of: ({ fleet }) => fleet?.latencyMs.p95 },
  { name: "  latency p99, ms", of: ({ fleet }) => fleet?.latencyMs.p99 },
  ...[...parts, "load" as const].map((part) => ({
    name: `  CPU of ${part}, µs/step`,
    of: ({ fleet }: Partial<StepRound>) => fleet?.cpuUs[part],
  })),
  {
    name: "bare ONNX Runtime at the fleet's batch: steps/s",
    of: ({ bareAtFleetBatch }) => bareAtFleetBatch?.stepsPerSecond,
  },
  { name: "  CPU, µs/step", of: ({ bareAtFleetBatch }) => bareAtFleetBatch?.cpuUs },
  { name: "  that batch", of: ({ bareAtFleetBatch }) => bareAtFleetBatch?.batch },
  { name: "bare ONNX Runtime, batch 64: steps/s", of: ({ bare64 }) => bare64?.stepsPerSecond },
  { name: "bare ONNX Runtime, batch 128: steps/s", of: ({ bare128 }) => bare128?.stepsPerSecond },
  { name: "one BullMQ job per inference: steps/s", of: ({ bull }) => bull?.stepsPerSecond },
  { name: "  latency p50, ms", of: ({ bull }) => bull?.latencyMs.p50 },
  {
    name: "fleet ÷ bare, same batch",
    goal: "≥ 0.6 (0.8 later)",
    of: ({ fleet, bareAtFleetBatch }) => ratio(fleet?.stepsPerSecond, bareAtFleetBatch?.stepsPerSecond),
  },
  { name: "fleet ÷ BullMQ", goal: "≥ 6", of: ({ fleet, bull }) => ratio(fleet?.stepsPerSecond, bull?.stepsPerSecond) },
  {
    name: "lstm-128, 64 connections: CPU of all servers, µs/step",
    goal: "≤ 190, then 160",
    of: ({ tiny }) => tiny && serverCpuUs(tiny),
  },
  ...parts.map((part) => ({ name: `  of ${part}`, of: ({ tiny }: Partial<StepRound>) => tiny?.cpuUs[part] })),
  { name: "  steps/s", of: ({ tiny }) => tiny?.stepsPerSecond },
  { name: "  mean batch", of: ({ tiny }) => tiny?.meanBatch },
  { name: "  latency p50, ms", of: ({ tiny }) => tiny?.latencyMs.p50 },
  {
    name: "  ÷ bare, one step at a time",
    goal: "≥ 0.3",
    of: ({ tiny, bareSingle }) => ratio(tiny?.stepsPerSecond, bareSingle?.stepsPerSecond),
  },
  {
    name: "  ÷ BullMQ",
    goal: "≥ 12",
    of: ({ tiny, bullTiny }) => ratio(tiny?.stepsPerSecond, bullTiny?.stepsPerSecond),
  },
  { name: "lstm-128, one sequence, no window: latency p50, ms", of: ({ single }) => single?.latencyMs.p50 },
  { name: "  the model's own time, ms", of: ({ bareSingle }) => bareSingle?.runMs.p50 },
  {
    name: "  p50 over the model's own time, ms",
    goal: "≤ 1.5",
    of: ({ single, bareSingle }) => single && bareSingle && single.latencyMs.p50 - bareSingle.runMs.p50,
  },
  ...OFFERED.flatMap((share): Wanted<StepRound>[] => {
    const at = ({ offered }: Partial<StepRound>) => offered?.at.find((one) => one.share === share);
    return [
      {
        name: `lstm-128, steps at random, ${share * 100} % of the most: steps/s`,
        of: (round) => at(round)?.stepsPerSecond,
      },
      { name: "  latency p50 from when a step was due, ms", of: (round) => at(round)?.latencyMs.p50 },
      { name: "  latency p99, ms", of: (round) => at(round)?.latencyMs.p99 },
      { name: "  the load's own delay p99, ms", of: (round) => at(round)?.lateMs.p99 },
      { name: "  mean batch", of: (round) => at(round)?.meanBatch },
    ];
  }),
];

export type Round = StepRound &
  StagesRound &
  StreamRound &
  QueueRound &
  HotRound &
  OwnersRound &
  NeighboursRound &
  ObserveRound &
  GrpcRound &
  CacheRound &
  BatchingRound;

export function figures(rounds: readonly Partial<Round>[]): Figure[] {
  const others = [
    ...queueFigures,
    ...hotFigures,
    ...ownersFigures,
    ...neighboursFigures,
    ...observeFigures,
    ...grpcFigures,
    ...cacheFigures,
    ...batchingFigures,
  ];
  return figuresOf<Round>([...stepFigures, ...stagesFigures, ...streamFigures, ...others], rounds);
}

export function figuresOf<Round>(wanted: readonly Wanted<Round>[], rounds: readonly Partial<Round>[]): Figure[] {
  return wanted.flatMap(({ name, goal, most, canMeet = true, of }) => {
    // A round without a measurement has no number.
    const values = rounds.map(of).filter((value): value is number => Number.isFinite(value));
    if (values.length === 0) return [];
    const middle = median(values);
    const kept = most === undefined ? undefined : middle <= most;
    return [
      {
        name,
        goal: goal ?? (most === undefined ? "" : `≤ ${most}`),
        met: kept === true && !canMeet ? undefined : kept,
        median: middle,
        values,
      },
    ];
  });
}

export function printFigures(figures: readonly Figure[]): string {
  const verdict = (met: boolean | undefined) => (met === undefined ? "" : met ? "yes" : "no");
  const rows = [
    ["", "median", "goal", "met", "rounds"],
    ...figures.map(({ name, goal, met, median, values }) => [
      name,
      shown(median),
      goal,
      verdict(met),
      values.map(shown).join("  "),
    ]),
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => (i === 1 ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}

function shown(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);
}
