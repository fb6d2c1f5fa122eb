/** Looks into a request that has come to this worker: whether it still runs, how far its stream has come, and what its prompt is in tokens. */
import type { SamplingSpec } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import type { RedisClock } from "#shared/redis/clock.js";
import { retrying } from "#shared/retry.js";
import { isUnwanted, readProgress, type TakenProgress } from "../queue/progress.js";
import type { StreamQueue } from "../queue/lane.js";
import type { Steadiness } from "../intake/steadiness.js";
import type { Active, Prepared } from "./active.js";
import { tokensIn } from "./replayed.js";
import type { ServingGenerator } from "./serving.js";
import { historyOf } from "./settlement.js";
import { heedsWanted, nobodyReads } from "./wanted.js";

export interface Preparation {
  readonly queue: StreamQueue;
  readonly clock: RedisClock;
  readonly steadiness: Steadiness;
  readonly model: ServingGenerator;
}

/** Past this the leases are gone too. */
const BUDGET_MS = 5_000;
const AT_ONCE = 16;

/** @param actives all new here, or all another worker's before. @param ready is told of each as soon as it is known */
export async function prepareAll(
  { queue, clock, steadiness, model }: Preparation,
  actives: readonly Active[],
  ready: (active: Active, prepared: Prepared) => void,
): Promise<void> {
  const requests = actives.map(({ held }) => held.delivery.request);
  const takenOver = actives.some(({ how }) => how === "suspect");
  let found: readonly TakenProgress[];
  try {
    found = await retrying(() => readProgress(queue.redis, queue.lane, requests, takenOver), { budgetMs: BUDGET_MS });
  } catch {
    // The connection's own watcher has logged why; the entries come back when their leases run out.
    for (const active of actives) ready(active, { kind: "drop" });
    return;
  }
  const inTurn = actives.map((active, i) => ({ active, progress: found[i] })).sort((a, b) => turnOf(a) - turnOf(b));
  // A hundred at once would keep this thread busy until the last one is ready, and the engine without anything to do.
  for (let i = 0; i < inTurn.length; i += AT_ONCE) {
    await Promise.all(
      inTurn.slice(i, i + AT_ONCE).map(async ({ active, progress }) => {
        if (progress === undefined) return ready(active, { kind: "drop" });
        const unwantedAt = heedsWanted(steadiness) ? clock.toRedis(performance.now()) : undefined;
        ready(active, await prepare(model, active, progress, unwantedAt));
      }),
    );
  }
}

/** Smaller is sooner: as they begin (returning.ts), or the first to be ready would begin before those that come first. */
function turnOf({ progress }: { readonly progress: TakenProgress | undefined }): number {
  return progress === undefined || progress.records.length === 0 ? Number.MAX_SAFE_INTEGER : progress.standsSince;
}

/** @param unwantedAt Redis ms at which nobody may have wanted it; undefined while that does not count. */
async function prepare(
  model: ServingGenerator,
  { held, spec }: Active,
  progress: TakenProgress,
  unwantedAt: number | undefined,
): Promise<Prepared> {
  const { records, state, standsSince } = progress;
  if (state === "ended") return { kind: "ended" };
  const inSequence = held.delivery.sequence !== undefined;
  if (state === "sealed" && !inSequence) return { kind: "sealed", records, history: undefined };
  const next = records.length;
  try {
    if (state === "open" && unwantedAt !== undefined && isUnwanted(progress, unwantedAt)) throw nobodyReads();
    if (inSequence && spec.sampling.choices > 1) {
      throw new InferenceError("invalid_argument", "a conversation's turn has one choice: n must be 1");
    }
    const lookup = await held.state;
    if (lookup.kind === "unavailable") return { kind: "drop" };
    if (lookup.kind === "refused") {
      // Its stream has ended well; only the conversation cannot go on from it.
      if (state === "sealed") return { kind: "sealed", records, history: undefined };
      throw lookup.error;
    }
    const prompt = await model.tokenizer.encode(spec.prompt, historyOf(lookup.tensors));
    const drawn = tokensIn(records, spec.sampling.choices);
    if (state === "sealed")
      return { kind: "sealed", records, history: Int32Array.from([...prompt, ...(drawn[0] ?? [])]) };
    if (prompt.length >= model.contextLength) {
      throw new InferenceError(
        "invalid_argument",
        `This model's maximum context length is ${model.contextLength} tokens. However, your prompt has ${prompt.length} tokens.`,
      );
    }
    checkMemory(model, spec.sampling, prompt.length);
    const replayed = drawn.map((tokens) => ({ tokens }));
    const generation = { key: held.delivery.entry, sampling: spec.sampling, prompt, next, replayed };
    return { kind: "run", generation, standsSince };
  } catch (error) {
    // The tokenizer is closing or starting anew; another worker, or this one later, has one.
    if (error instanceof InferenceError && error.code === "unavailable") return { kind: "drop" };
    const refusal =
      error instanceof InferenceError ? error : new InferenceError("internal", "internal error", { cause: error });
    return { kind: "refuse", error: refusal, next };
  }
}

/** @throws InferenceError for choices that could outgrow the caches' memory between them: nobody could be preempted for them. */
function checkMemory(
  { contextLength, kvBytes, host }: ServingGenerator,
  { choices, maxTokens }: SamplingSpec,
  prompt: number,
): void {
  if (choices === 1) return;
  const most = Math.floor(kvBytes / host.facts.bytesPerToken);
  const each = Math.min(prompt + (maxTokens ?? contextLength), contextLength);
  if (choices * each <= most) return;
  throw new InferenceError(
    "invalid_argument",
    `n=${choices} choices of up to ${each} tokens are more than the ${most} tokens that this model's cache holds; ask for fewer or shorter ones`,
  );
}
