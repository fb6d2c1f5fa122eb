/** All that the rounds of generation need: prompts and their answers, and a fleet of its own that serves the generators. */
import { join } from "node:path";
import { makeRepository } from "../../setup/repository.js";
import { runChild } from "../child.js";
import { startBenchFleet } from "../fleet.js";
import { cheap, demo, long, type StreamModel } from "../models.js";
import type { Scenarios } from "../rounds.js";
import type { Timing } from "../scenarios.js";
import type { StreamReferenceJob } from "./reference.js";
import { streamScenarios, type StreamRound } from "./scenarios.js";
import { promptsFor } from "./takeover.js";

export interface StreamSuitePlan {
  readonly folder: string;
  /** What will be measured. */
  readonly names: readonly (keyof StreamRound)[];
  readonly timing: Timing;
  /** Kills at each length of history. */
  readonly takeovers: number;
  readonly progress: (line: string) => void;
  readonly onClose: (close: () => Promise<unknown>) => void;
}

/** Small enough that a prompt of `demo` is forgotten before its next turn; sixteen of its streams take 6 MiB. */
const KV_BYTES = 16 * 1024 * 1024;

export async function openStreams(plan: StreamSuitePlan): Promise<Scenarios<StreamRound>> {
  const { folder, timing, progress } = plan;
  const references = new Map<string, string>();
  for (const model of modelsFor(plan)) {
    progress(`computing the expected answers of ${model.name}`);
    const job: StreamReferenceJob = { model, file: join(folder, `${model.name}.answers`) };
    await runChild(new URL("./reference.js", import.meta.url), job);
    references.set(model.name, job.file);
  }
  progress("starting the fleet of generators");
  const repository = makeRepository(join(folder, "generators"), [demo.name, cheap.name, long.name]);
  const served = [demo.name, cheap.name];
  const fleet = await startBenchFleet({
    folder: join(folder, "streams"),
    repository,
    models: served,
    workers: 1,
    env: { BATON_MODELS: served.join(","), BATON_KV_CACHE_BYTES: String(KV_BYTES) },
  });
  plan.onClose(() => fleet.dispose());
  const answers = references.get(long.name) ?? "";
  const takeovers = { folder, repository, references: answers, times: plan.takeovers, progress };
  return streamScenarios({ fleet, references, timing, takeovers, progress });
}

function modelsFor({ names, takeovers }: StreamSuitePlan): StreamModel[] {
  const used: StreamModel[] = [];
  if (names.some((name) => name.endsWith("One") || name.endsWith("Sixteen"))) used.push(demo);
  if (names.includes("sse") || names.includes("bareSse")) used.push(cheap);
  if (names.includes("takeover")) used.push({ ...long, prompts: promptsFor(takeovers) });
  return used;
}
