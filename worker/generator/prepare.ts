/** Looks into a request that has come to this worker: whether it still runs, how far its stream has come, and what its prompt is in tokens. */
import { randomUUID } from "node:crypto";
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import type { RedisClock } from "#shared/redis/clock.js";
import { retrying } from "#shared/retry.js";
import { isUnwanted, readProgress, type Progress } from "../queue/progress.js";
import type { StreamQueue } from "../queue/lane.js";
import { takeOver, type Takeover } from "../queue/take-over.js";
import type { Active, Prepared } from "./active.js";
import type { ServingGenerator } from "./serving.js";
import { historyOf } from "./settlement.js";

export interface Preparation {
  readonly queue: StreamQueue;
  readonly clock: RedisClock;
  readonly model: ServingGenerator;
}

/** Past this the leases are gone too. */
const BUDGET_MS = 5_000;

/** @param how suspects were another worker's, or ours before a cut: what they did there is asked first. @param ready is told of each as soon as it is known */
export async function prepareAll(
  { queue, clock, model }: Preparation,
  actives: readonly Active[],
  how: "fresh" | "suspect",
  ready: (active: Active, prepared: Prepared) => void,
): Promise<void> {
  const deliveries = actives.map(({ held }) => held.delivery);
  const name = randomUUID();
  let found: { takeovers: readonly Takeover[]; progress: readonly Progress[] };
  try {
    const takeovers =
      how === "fresh"
        ? deliveries.map((): Takeover => "together")
        : await retrying(() => takeOver(queue, deliveries, name), { budgetMs: BUDGET_MS });
    const requests = deliveries.map(({ request }) => request);
    const progress = await retrying(() => readProgress(queue.redis, queue.lane, requests), { budgetMs: BUDGET_MS });
    found = { takeovers, progress };
  } catch {
    // The connection's own watcher has logged why; the entries come back when their leases run out.
    for (const active of actives) ready(active, { kind: "drop" });
    return;
  }
  await Promise.all(
    actives.map(async (active, i) => {
      const takeover = found.takeovers[i] ?? "lost";
      const progress = found.progress[i];
      if (takeover === "lost" || progress === undefined) return ready(active, { kind: "drop" });
      const redisNow = clock.toRedis(performance.now());
      ready(active, await prepare(model, active, takeover === "alone", progress, redisNow));
    }),
  );
}

async function prepare(
  model: ServingGenerator,
  { held, spec }: Active,
  alone: boolean,
  progress: Progress,
  redisNow: number,
): Promise<Prepared> {
  const { records, state } = progress;
  if (state === "ended") return { kind: "ended" };
  const inSequence = held.delivery.sequence !== undefined;
  if (state === "sealed" && !inSequence) return { kind: "sealed", records, history: undefined };
  const next = records.length;
  try {
    if (state === "open" && isUnwanted(progress, redisNow)) {
      throw new InferenceError("cancelled", "nobody reads this stream any more");
    }
    if (inSequence && spec.sampling.choices > 1) {
      throw new InferenceError("invalid_argument", "a conversation's turn has one choice: n must be 1");
    }
    const lookup = await held.state;
    if (lookup.kind === "unavailable") return { kind: "drop" };
    if (lookup.kind === "refused") throw lookup.error;
    const prompt = await model.tokenizer.encode(spec.prompt, historyOf(lookup.tensors));
    const logged = records.map((record): TokenRecord => tokenRecord.parse(JSON.parse(record.toString("utf8"))));
    if (state === "sealed") return { kind: "sealed", records, history: withOutput(prompt, logged) };
    if (prompt.length >= model.contextLength) {
      throw new InferenceError(
        "invalid_argument",
        `This model's maximum context length is ${model.contextLength} tokens. However, your prompt has ${prompt.length} tokens.`,
      );
    }
    const replayed = Array.from({ length: spec.sampling.choices }, (_, choice) => ({
      tokens: outputOf(logged, choice),
    }));
    const generation = { key: held.delivery.entry, sampling: spec.sampling, prompt, next, replayed };
    return { kind: "run", alone, generation };
  } catch (error) {
    // The tokenizer is closing or starting anew; another worker, or this one later, has one.
    if (error instanceof InferenceError && error.code === "unavailable") return { kind: "drop" };
    const refusal =
      error instanceof InferenceError ? error : new InferenceError("internal", "internal error", { cause: error });
    return { kind: "refuse", error: refusal, next };
  }
}

function outputOf(records: readonly TokenRecord[], choice: number): number[] {
  return records.flatMap(({ choices }) => choices.find(({ index }) => index === choice)?.tokens ?? []);
}

function withOutput(prompt: Int32Array, records: readonly TokenRecord[]): Int32Array {
  return Int32Array.from([...prompt, ...outputOf(records, 0)]);
}
