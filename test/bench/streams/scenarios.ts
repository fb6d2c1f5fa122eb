/**
 * The measurements of generation in a round: streams through the fleet, the same tokens in a bare
 * loop, and a worker that dies under a stream.
 */
import { runChild } from "../support/child.js";
import { busyMs, othersShare } from "../support/cpu.js";
import { parts, type BenchFleet, type Part } from "../support/fleet.js";
import { cheap, demo, wide, type StreamModel } from "../support/models.js";
import type { Percentiles } from "../support/statistics.js";
import type { Scenarios } from "../support/rounds.js";
import type { Timing } from "../steps/scenarios.js";
import type { BareStreamJob, BareStreamResult } from "./bare.js";
import type { StreamLoadJob, StreamLoadResult } from "./load.js";
import { measureTakeovers, type TakeoverPlan, type TakeoverResult } from "./takeover.js";

export interface StreamSetting {
  readonly fleet: BenchFleet;
  /**
   * A second fleet, whose JetStream keeps the records; undefined if no scenario needs this fleet.
   */
  readonly capturing: BenchFleet | undefined;
  /** Files of prompts and answers, by the model's name. */
  readonly references: ReadonlyMap<string, string>;
  readonly timing: Timing;
  readonly takeovers: TakeoverPlan;
  readonly progress: (line: string) => void;
}

export interface StreamResult {
  readonly tokensPerSecond: number;
  /** Milliseconds from the sending of the request. */
  readonly firstTokenMs: Percentiles;
  readonly betweenTokensMs: Percentiles;
  /** Percentiles of the streams' own means, because tokens often come several at once. */
  readonly meanBetweenMs: Percentiles;
  /** Microseconds of CPU per token. */
  readonly cpuUs: Readonly<Record<Part | "load", number>>;
  /** Share of the machine that other processes took meanwhile, from 0 to 1. */
  readonly others: number;
  /** Share of the time in which V8 paused a thread to collect garbage; only when profiling. */
  readonly paused?: Readonly<Record<"gateway" | "workers", number>>;
  /** How many streams had their answer checked. */
  readonly checked: number;
  readonly wrong: number;
}

export interface StreamRound {
  streamOne: StreamResult;
  bareStreamOne: BareStreamResult;
  streamSixteen: StreamResult;
  bareStreamSixteen: BareStreamResult;
  wideOne: StreamResult;
  bareWideOne: BareStreamResult;
  wideSixteen: StreamResult;
  bareWideSixteen: BareStreamResult;
  sse: StreamResult;
  captured: StreamResult;
  bareSse: BareStreamResult;
  takeover: TakeoverResult;
}

export const streamNames: readonly (keyof StreamRound)[] = [
  "streamOne",
  "bareStreamOne",
  "streamSixteen",
  "bareStreamSixteen",
  "wideOne",
  "bareWideOne",
  "wideSixteen",
  "bareWideSixteen",
  "sse",
  "captured",
  "bareSse",
  "takeover",
];

const BATCH = 16;
const SSE_STREAMS = 64;

export function streamScenarios(setting: StreamSetting): Scenarios<StreamRound> {
  /** How many prompts of each model the rounds took so far. */
  const taken = new Map<StreamModel, number>();

  const measureFleet = async (
    model: StreamModel,
    connections: number,
    fleet = setting.fleet,
  ): Promise<StreamResult> => {
    const { timing, progress } = setting;
    const references = referencesOf(setting, model);
    const job: StreamLoadJob = {
      port: fleet.port,
      model,
      connections,
      references,
      taken: taken.get(model) ?? 0,
      ...timing,
    };
    const look = () => ({ at: performance.now(), cpu: fleet.cpu(), busyMs: busyMs(), pauses: fleet.pauses() });
    let from = look();
    let to = from;
    const loaded = await runChild<StreamLoadJob, StreamLoadResult>(
      new URL("./load.js", import.meta.url),
      job,
      () => (from = look()),
      () => (to = look()),
    );
    taken.set(model, loaded.taken);
    if (loaded.fault !== undefined) progress(`${model.name}: ${loaded.fault}`);
    const perToken = (cpuMs: number) => (cpuMs * 1_000) / loaded.tokens;
    const cpuUs = Object.fromEntries([
      ...parts.map((part) => [part, perToken(to.cpu[part] - from.cpu[part])]),
      ["load", perToken(loaded.cpuMs)],
    ]) as StreamResult["cpuUs"];
    const ownMs = parts.reduce((sum, part) => sum + to.cpu[part] - from.cpu[part], loaded.cpuMs);
    const paused = (part: "gateway" | "workers") => (to.pauses[part] - from.pauses[part]) / (to.at - from.at);
    return {
      tokensPerSecond: loaded.tokens / loaded.seconds,
      firstTokenMs: loaded.firstTokenMs,
      betweenTokensMs: loaded.betweenTokensMs,
      meanBetweenMs: loaded.meanBetweenMs,
      cpuUs,
      others: othersShare(to.busyMs - from.busyMs, ownMs, to.at - from.at),
      ...(process.env["BATON_BENCH_PROFILE"] !== undefined && {
        paused: { gateway: paused("gateway"), workers: paused("workers") },
      }),
      checked: loaded.checked,
      wrong: loaded.wrong,
    };
  };

  const measureBare = (model: StreamModel, batch: number): Promise<BareStreamResult> => {
    const { warmupMs, measureMs } = setting.timing;
    const job: BareStreamJob = {
      model,
      batch,
      references: referencesOf(setting, model),
      warmupMs: warmupMs / 2,
      measureMs: measureMs / 2,
    };
    return runChild(new URL("./bare.js", import.meta.url), job);
  };

  return {
    streamOne: () => measureFleet(demo, 1),
    bareStreamOne: () => measureBare(demo, 1),
    streamSixteen: () => measureFleet(demo, BATCH),
    bareStreamSixteen: () => measureBare(demo, BATCH),
    wideOne: () => measureFleet(wide, 1),
    bareWideOne: () => measureBare(wide, 1),
    wideSixteen: () => measureFleet(wide, BATCH),
    bareWideSixteen: () => measureBare(wide, BATCH),
    sse: () => measureFleet(cheap, SSE_STREAMS),
    captured: () => measureFleet(cheap, SSE_STREAMS, capturingFleet(setting)),
    bareSse: () => measureBare(cheap, SSE_STREAMS),
    takeover: () => measureTakeovers(setting.takeovers),
  };
}

function capturingFleet({ capturing }: StreamSetting): BenchFleet {
  if (capturing === undefined) throw new Error("no fleet was started that keeps records in JetStream");
  return capturing;
}

function referencesOf({ references }: StreamSetting, model: StreamModel): string {
  const file = references.get(model.name);
  if (file === undefined) throw new Error(`no answers of ${model.name}`);
  return file;
}
