/** The figures of two builds side by side: the cost of a step and of a token, and their ratios. */
import { DEVICE_BATCH, DEVICE_RUN_MS } from "../support/models.js";
import { parts, type Part } from "../support/fleet.js";
import { ratio, type Wanted } from "../support/statistics.js";
import type { FleetResult } from "../steps/scenarios.js";
import type { StreamResult } from "../streams/scenarios.js";
import type { BatchResult } from "./batch.js";
import type { Beside, HotRound } from "./scenarios.js";

type Round = Partial<HotRound>;
type Pair<Result> = (round: Round) => Beside<Result> | undefined;
type Figures = readonly Wanted<HotRound>[];

interface Costly {
  readonly cpuUs: Readonly<Record<Part | "load", number>>;
  readonly others: number;
}

/** With more than this share of the machine taken by others, a run's times are doubtful. */
const MOST_OTHERS = 0.05;

/** A quantity of both builds, and the ratio of both in the same round. */
function both<Result>(name: string, pair: Pair<Result>, of: (result: Result) => number, most?: number): Figures {
  const value = (side: "here" | "there") => (round: Round) => {
    const results = pair(round);
    return results && of(results[side]);
  };
  const [here, there] = [value("here"), value("there")];
  return [
    { name, of: here },
    { name: "  the other build", of: there },
    {
      name: "  this ÷ the other",
      ...(most !== undefined && { most }),
      of: (round) => ratio(here(round), there(round)),
    },
  ];
}

function costs<Result extends Costly>(what: string, unit: string, pair: Pair<Result>): Figures {
  const sum = ({ cpuUs }: Costly) => parts.reduce((total, part) => total + cpuUs[part], 0);
  return [
    ...both(`${what}: CPU of all servers, µs/${unit}`, pair, sum, MOST_COST),
    ...parts.flatMap((part) => both(`  CPU of ${part}, µs/${unit}`, pair, ({ cpuUs }) => cpuUs[part])),
    ...both("  share of the machine that others took", pair, ({ others }) => others)
      .slice(0, 2)
      .map((figure) => ({
        ...figure,
        most: MOST_OTHERS,
      })),
  ];
}

/** A change that makes nothing slower stays within this ratio. */
const MOST_COST = 1.02;

function stepsOf(what: string, pair: Pair<FleetResult>): Figures {
  return [
    ...costs(what, "step", pair),
    ...both("  steps/s", pair, ({ stepsPerSecond }) => stepsPerSecond),
    ...both("  mean batch", pair, ({ meanBatch }) => meanBatch),
    ...both("  model busy, share of time", pair, ({ modelBusy }) => modelBusy),
    ...both("  latency p50, ms", pair, ({ latencyMs }) => latencyMs.p50),
  ];
}

/** The steps per second that the simulated device can do. */
const DEVICE_RATE = (DEVICE_BATCH * 1_000) / DEVICE_RUN_MS;

function deviceOf(what: string, pair: Pair<FleetResult>): Figures {
  const share = ({ stepsPerSecond }: FleetResult) => stepsPerSecond / DEVICE_RATE;
  return [...both(`${what}: share of the device's own rate`, pair, share), ...stepsOf(what, pair)];
}

export const hotFigures: Figures = [
  ...stepsOf("lstm-128, 64 sequences", ({ hotTiny }) => hotTiny),
  ...stepsOf("lstm-1024, 128 sequences", ({ hotLarge }) => hotLarge),
  ...deviceOf("a simulated device, 256 sequences", ({ hotDevice }) => hotDevice),
  ...deviceOf("a simulated device, 128 sequences", ({ hotDeviceFew }) => hotDeviceFew),
  ...costs<StreamResult>("gen-cheap, 64 streams", "token", ({ hotSse }) => hotSse),
  ...both<StreamResult>(
    "  tokens/s",
    ({ hotSse }) => hotSse,
    ({ tokensPerSecond }) => tokensPerSecond,
  ),
  ...both<BatchResult>(
    "a batch of requests: lines/s",
    ({ hotBatch }) => hotBatch,
    ({ linesPerSecond }) => linesPerSecond,
  ),
];
