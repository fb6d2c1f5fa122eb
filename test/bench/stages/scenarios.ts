/**
 * The mean time between two stages of a step. The fleet writes its stages down meanwhile, so it is
 * somewhat slower than in the other scenarios.
 */
import { join } from "node:path";
import { root } from "../../support/fleet/root.js";
import { LARGE_SEQUENCES, measureFleet, TINY_SEQUENCES, type FleetResult, type Timing } from "../steps/scenarios.js";
import { startBenchFleet } from "../support/fleet.js";
import { benchRepository, large, tiny, tinyAtOnce, type BenchModel } from "../support/models.js";
import type { Scenarios } from "../support/rounds.js";
import type { Wanted } from "../support/statistics.js";
import { parts, readStages, type StageTimes } from "./read.js";
import { WRITE_EVERY_MS } from "./record.js";

export interface StagesResult extends FleetResult {
  readonly times: StageTimes;
}

export interface StagesRound {
  stagesAlone: StagesResult;
  stagesTiny: StagesResult;
  stagesLarge: StagesResult;
}

const loads: Readonly<Record<keyof StagesRound, { what: string; model: BenchModel; sequences: number }>> = {
  stagesAlone: { what: "one sequence, lstm-128, no window", model: tinyAtOnce, sequences: 1 },
  stagesTiny: { what: "64 sequences, lstm-128", model: tiny, sequences: TINY_SEQUENCES },
  stagesLarge: { what: "128 sequences, lstm-1024", model: large, sequences: LARGE_SEQUENCES },
};

export const stagesNames = Object.keys(loads) as (keyof StagesRound)[];

export interface StagesPlan {
  readonly folder: string;
  /** Files of expected outputs, by the model's size. */
  readonly expected: ReadonlyMap<number, string>;
  readonly timing: Timing;
  readonly onClose: (close: () => Promise<unknown>) => void;
}

export async function stagesScenarios({
  folder,
  expected,
  timing,
  onClose,
}: StagesPlan): Promise<Scenarios<StagesRound>> {
  const to = join(folder, "stages");
  const fleet = await startBenchFleet({
    folder: join(folder, "stages-fleet"),
    repository: benchRepository(join(folder, "stages-models")),
    models: Object.values(loads).map(({ model }) => model.name),
    workers: 1,
    env: { BATON_LOG_LEVEL: "debug" },
    common: { STAGES_TO: to, NODE_OPTIONS: `--import=${join(root, "dist/test/bench/stages/record.js")}` },
  });
  onClose(() => fleet.dispose());
  const measure = async (name: keyof StagesRound): Promise<StagesResult> => {
    const { model, sequences } = loads[name];
    const result = await measureFleet({ fleet, expected, timing }, model, sequences);
    const until = Date.now();
    await new Promise((resolve) => setTimeout(resolve, 2 * WRITE_EVERY_MS));
    return { ...result, times: readStages(to, until - timing.measureMs, until) };
  };
  return {
    stagesAlone: () => measure("stagesAlone"),
    stagesTiny: () => measure("stagesTiny"),
    stagesLarge: () => measure("stagesLarge"),
  };
}

export const stagesFigures: readonly Wanted<StagesRound>[] = stagesNames.flatMap((name) => [
  { name: `${loads[name].what}: latency p50, ms`, of: (round: Partial<StagesRound>) => round[name]?.latencyMs.p50 },
  ...parts.map((part, place) => ({
    name: `  ${part}, µs`,
    of: (round: Partial<StagesRound>) => round[name]?.times.us[place],
  })),
]);
