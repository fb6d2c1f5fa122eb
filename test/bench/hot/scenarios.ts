/**
 * The hot path of this build beside the build of another checkout. Both fleets stand from the
 * beginning, and the load goes to one after the other, so that a slow change of the machine favours
 * neither.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { startBenchFleet } from "../support/fleet.js";
import { benchRepository, device, large, tiny, type BenchModel } from "../support/models.js";
import type { Scenarios } from "../support/rounds.js";
import { LARGE_SEQUENCES, measureFleet, TINY_SEQUENCES, type FleetResult, type Timing } from "../steps/scenarios.js";
import { openBatches, type BatchResult } from "./batch.js";
import type { StreamResult } from "../streams/scenarios.js";
import { openStreams } from "../streams/suite.js";

/** The same measurement of both builds. */
export interface Beside<Result> {
  readonly here: Result;
  readonly there: Result;
  readonly checked: number;
  readonly wrong: number;
}

export interface HotRound {
  hotTiny: Beside<FleetResult>;
  hotLarge: Beside<FleetResult>;
  hotDevice: Beside<FleetResult>;
  hotDeviceFew: Beside<FleetResult>;
  hotSse: Beside<StreamResult>;
  hotBatch: Beside<BatchResult>;
}

/** Four batches of the simulated device, and in another scenario half of them. */
const DEVICE_SEQUENCES = 256;

export const hotNames: readonly (keyof HotRound)[] = [
  "hotTiny",
  "hotLarge",
  "hotDevice",
  "hotDeviceFew",
  "hotSse",
  "hotBatch",
];

export interface HotPlan {
  readonly folder: string;
  /** The other checkout, which is installed and built. */
  readonly other: string;
  /** Files of expected outputs, by the model's size. */
  readonly expected: ReadonlyMap<number, string>;
  readonly names: readonly (keyof HotRound)[];
  readonly timing: Timing;
  readonly progress: (line: string) => void;
  readonly onClose: (close: () => Promise<unknown>) => void;
}

interface Counted {
  readonly checked: number;
  readonly wrong: number;
}

/** Measures one build after the other, each first in every other call. */
function inTurn<Result extends Counted>(
  here: () => Promise<Result>,
  there: () => Promise<Result>,
): () => Promise<Beside<Result>> {
  let isHereFirst = false;
  return async () => {
    isHereFirst = !isHereFirst;
    const [one, other] = isHereFirst ? [here, there] : [there, here];
    const results = [await one(), await other()] as const;
    const [ours, theirs] = isHereFirst ? results : [results[1], results[0]];
    return {
      here: ours,
      there: theirs,
      checked: ours.checked + theirs.checked,
      wrong: ours.wrong + theirs.wrong,
    };
  };
}

export async function hotScenarios(plan: HotPlan): Promise<Scenarios<HotRound>> {
  const { folder, other, names, onClose } = plan;
  const hasSteps = names.some((name) => name !== "hotSse" && name !== "hotBatch");
  const repository = hasSteps ? benchRepository(join(folder, "hot-models")) : "";
  const steps = async (place: string, build?: string) => {
    if (!hasSteps) return unmeasured;
    const fleet = await startBenchFleet({
      folder: join(folder, place),
      repository,
      models: [large.name, tiny.name, device.name],
      workers: 1,
      env: { BATON_LOG_LEVEL: "debug" },
      ...(build !== undefined && { build }),
    });
    onClose(() => fleet.dispose());
    return (model: BenchModel, sequences: number) => measureFleet({ ...plan, fleet }, model, sequences);
  };
  const streams = async (place: string, build?: string) => {
    if (!names.includes("hotSse")) return unmeasured;
    const own = join(folder, place);
    mkdirSync(own);
    const given = { ...plan, folder: own, names: ["sse"] as const, takeovers: 0 };
    return (await openStreams({ ...given, ...(build !== undefined && { build }) })).sse;
  };
  const batches = async (place: string, build?: string) => {
    if (!names.includes("hotBatch")) return unmeasured;
    const own = join(folder, place);
    mkdirSync(own);
    const bench = await openBatches(own, build);
    onClose(() => bench.dispose());
    return () => bench.measure();
  };
  const [hereSteps, thereSteps] = [await steps("steps-here"), await steps("steps-there", other)];
  const [hereStreams, thereStreams] = [await streams("streams-here"), await streams("streams-there", other)];
  const [hereBatches, thereBatches] = [await batches("batches-here"), await batches("batches-there", other)];
  const ofSteps = (model: BenchModel, sequences: number) =>
    inTurn(
      () => hereSteps(model, sequences),
      () => thereSteps(model, sequences),
    );
  return {
    hotTiny: ofSteps(tiny, TINY_SEQUENCES),
    hotLarge: ofSteps(large, LARGE_SEQUENCES),
    hotDevice: ofSteps(device, DEVICE_SEQUENCES),
    hotDeviceFew: ofSteps(device, DEVICE_SEQUENCES / 2),
    hotSse: inTurn(hereStreams, thereStreams),
    hotBatch: inTurn(hereBatches, thereBatches),
  };
}

function unmeasured(): Promise<never> {
  return Promise.reject(new Error("the command line does not name this scenario"));
}
