/**
 * The parts that all rounds of generation need: prompts with their answers, and a fleet that serves
 * the generators.
 */
import { join } from "node:path";
import { makeRepository } from "../../support/fleet/repository.js";
import { runChild } from "../support/child.js";
import { startBenchFleet } from "../support/fleet.js";
import { cheap, demo, long, wide, type StreamModel } from "../support/models.js";
import type { Scenarios } from "../support/rounds.js";
import type { Timing } from "../steps/scenarios.js";
import type { StreamReferenceJob } from "./reference.js";
import { streamScenarios, type StreamRound } from "./scenarios.js";
import { answersFor } from "./takeover.js";

export interface StreamSuitePlan {
  readonly folder: string;
  /** The scenarios to measure. */
  readonly names: readonly (keyof StreamRound)[];
  readonly timing: Timing;
  /** How many kills there are at each length of history. */
  readonly takeovers: number;
  /** The checkout whose build serves, if it is another one. */
  readonly build?: string;
  readonly progress: (line: string) => void;
  readonly onClose: (close: () => Promise<unknown>) => void;
}

/**
 * Small enough that the cache drops a prompt of `demo` before its next turn. Sixteen streams of
 * `demo` take 6 MiB.
 */
const KV_BYTES = 16 * 1024 * 1024;

export async function openStreams(plan: StreamSuitePlan): Promise<Scenarios<StreamRound>> {
  const { folder, timing, progress } = plan;
  const answersOf = async (model: StreamModel): Promise<string> => {
    progress(`computing the expected answers of ${model.name}, ${model.answerTokens} tokens each`);
    const job: StreamReferenceJob = { model, file: join(folder, `${model.name}-${model.answerTokens}.answers`) };
    await runChild(new URL("./reference.js", import.meta.url), job);
    return job.file;
  };
  const references = new Map<string, string>();
  const measured = modelsFor(plan);
  for (const model of measured) references.set(model.name, await answersOf(model));
  const histories = new Map<number, string>();
  if (plan.names.includes("takeover"))
    for (const [history, model] of answersFor(plan.takeovers)) histories.set(history, await answersOf(model));
  progress("starting the fleet of generators");
  const repository = makeRepository(join(folder, "generators"), [demo.name, cheap.name, wide.name, long.name]);
  const served = [...new Set([cheap, ...measured])].map(({ name }) => name);
  const startFleet = async (name: string, common: Readonly<Record<string, string>>) => {
    const fleet = await startBenchFleet({
      folder: join(folder, name),
      repository,
      models: served,
      workers: 1,
      env: { BATON_MODELS: served.join(","), BATON_KV_CACHE_BYTES: String(KV_BYTES) },
      common,
      ...(plan.build !== undefined && { build: plan.build }),
    });
    plan.onClose(() => fleet.dispose());
    return fleet;
  };
  const fleet = await startFleet("streams", {});
  const isCaptured = plan.names.includes("captured");
  const capturing = isCaptured ? await startFleet("captured", { BATON_CAPTURE_TTL_MS: "600000" }) : undefined;
  const takeovers = { folder, repository, references: histories, times: plan.takeovers, progress };
  return streamScenarios({ fleet, capturing, references, timing, takeovers, progress });
}

function modelsFor({ names }: StreamSuitePlan): StreamModel[] {
  const used: StreamModel[] = [];
  if (names.some((name) => /stream(One|Sixteen)/i.test(name))) used.push(demo);
  if (names.some((name) => /wide(One|Sixteen)/i.test(name))) used.push(wide);
  if (names.some((name) => ["sse", "captured", "bareSse"].includes(name))) used.push(cheap);
  return used;
}
