/**
 * Finds out how a stream at this worker continues: whether it still runs, the length of its log,
 * and its prompt in tokens.
 */
import type { SamplingSpec } from "#shared/contract/generation.js";
import { historyOf } from "#shared/contract/states.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import type { RedisClocks } from "#shared/redis/clock.js";
import { retrying } from "#shared/retry.js";
import { isUnwanted, readProgress, type TakenProgress } from "#shared/queue/work/streams/read-progress.js";
import type { StreamQueue } from "#shared/queue/work/lane.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import type { Stream } from "./stream.js";
import type { NewGeneration } from "../engine/protocol.js";
import type { ServingGenerator } from "./load.js";
import { marksCount, nobodyReads } from "./unread.js";

export interface Preparation {
  readonly queue: StreamQueue;
  readonly clocks: RedisClocks;
  readonly outageGuard: OutageGuard;
  readonly model: ServingGenerator;
}

/** How a stream continues. */
export type Prepared =
  /**
   * The engine may compute the stream. `standsSince`: the time of the log's last growth, in ms of
   * Redis's clock.
   */
  | { readonly kind: "run"; readonly generation: NewGeneration; readonly standsSince: number }
  /**
   * The stream ends with this error: no worker can compute the stream, or no client reads it any
   * more. `next`: index of the error's record.
   */
  | { readonly kind: "refuse"; readonly error: InferenceError; readonly next: number }
  /**
   * Another worker wrote the final record, but did not commit its outcome. `history`: prompt and
   * output, for a conversation.
   */
  | { readonly kind: "sealed"; readonly records: readonly string[]; readonly history: Int32Array | undefined }
  /** The stream has an outcome. Only its entry is left. */
  | { readonly kind: "ended" }
  /** The stream is another worker's, or its state is unknown for now. */
  | { readonly kind: "drop" };

/** How long reads from Redis retry, in ms. */
const BUDGET_MS = 5_000;
/** Most prompts to turn into tokens at a time. */
const AT_ONCE = 16;

/**
 * @param streams either all new, or all taken over
 * @param ready runs for each stream as soon as its preparation is done
 */
export async function prepareAll(
  { queue, clocks, outageGuard, model }: Preparation,
  streams: readonly Stream[],
  ready: (stream: Stream, prepared: Prepared) => void,
): Promise<void> {
  const addresses = streams.map(({ held }) => held.delivery);
  const takenOver = streams.some(({ takenOver }) => takenOver);
  let found: readonly TakenProgress[];
  try {
    found = await retrying(() => readProgress(queue.redis, addresses, takenOver), { budgetMs: BUDGET_MS });
  } catch {
    // The connection's own listeners have logged the error. The worker takes the entries back in a
    // while.
    for (const stream of streams) ready(stream, { kind: "drop" });
    return;
  }
  const inTurn = streams.map((stream, i) => ({ stream, progress: found[i] })).sort((a, b) => turnOf(a) - turnOf(b));
  // A single pass over all streams would keep this thread busy to the end, with no work for the
  // engine.
  for (let i = 0; i < inTurn.length; i += AT_ONCE) {
    await Promise.all(
      inTurn.slice(i, i + AT_ONCE).map(async ({ stream, progress }) => {
        if (progress === undefined) return ready(stream, { kind: "drop" });
        const clock = clocks.of(bucketTag(stream.held.delivery.bucket));
        const now = marksCount(outageGuard) ? clock.toRedis(performance.now()) : undefined;
        ready(stream, await prepare(model, stream, progress, now));
      }),
    );
  }
}

/**
 * Sorts streams into the order of their turns (takeover.ts), smaller first. Otherwise a stream that
 * is ready early would begin before streams with an earlier turn.
 */
function turnOf({ progress }: { readonly progress: TakenProgress | undefined }): number {
  return progress === undefined || progress.records.length === 0 ? Number.MAX_SAFE_INTEGER : progress.standsSince;
}

/**
 * @param now on Redis's clock, in ms: a stream whose mark has lapsed by then has no reader;
 * undefined while marks do not count
 */
export async function prepare(
  model: ServingGenerator,
  { held, spec, sharer }: Stream,
  progress: TakenProgress,
  now: number | undefined,
): Promise<Prepared> {
  const { records, state, standsSince } = progress;
  if (state === "ended") return { kind: "ended" };
  const inSequence = held.delivery.sequence !== undefined;
  if (state === "sealed" && !inSequence) return { kind: "sealed", records, history: undefined };
  const next = records.length;
  try {
    if (state === "open" && now !== undefined && isUnwanted(progress, now)) throw nobodyReads();
    if (inSequence && spec.sampling.choices > 1) {
      throw fixedError("invalid_argument", "oneChoicePerTurn");
    }
    const lookup = await held.state;
    if (lookup.kind === "unavailable") return { kind: "drop" };
    const history = lookup.kind === "refused" ? lookup.error : readHistory(lookup.tensors, model);
    if (history instanceof InferenceError) {
      // The stream has ended well. Only the conversation cannot continue.
      if (state === "sealed") return { kind: "sealed", records, history: undefined };
      throw history;
    }
    const prompt = await model.tokenizer.encode(sharer, spec.prompt, history);
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
    const generation = { key: held.delivery.key, ...sharer, sampling: spec.sampling, prompt, next, replayed };
    return { kind: "run", generation, standsSince };
  } catch (error) {
    // The tokenizer is closing or restarting. Another worker, or this one after the restart, takes
    // the stream.
    if (error instanceof InferenceError && error.code === "unavailable") return { kind: "drop" };
    const refusal = error instanceof InferenceError ? error : fixedError("internal", "usual", { cause: error });
    return { kind: "refuse", error: refusal, next };
  }
}

/**
 * Reads the tokens of a conversation from its checkpoint. A client may have imported the
 * checkpoint, so its contents need checks.
 * @returns undefined at the first turn; an error for contents that no worker has written for this
 * model
 */
function readHistory(
  tensors: readonly Tensor[] | undefined,
  model: ServingGenerator,
): Int32Array | InferenceError | undefined {
  if (tensors === undefined) return undefined;
  const history = historyOf(tensors, model);
  return typeof history === "string" ? fixedError("state_corrupt", "unfit") : history;
}

/**
 * Choices of one request run together, so no choice could give way to the others.
 * @throws InferenceError for choices that together could outgrow the memory of the caches
 */
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

/**
 * Reads the tokens that each choice has drawn so far from a stream's records. The schema would take
 * 40 µs a record, on the thread that sends the worker's beats. A worker may take over a hundred
 * streams of thousands of records at once, so this code checks by hand.
 * @param records as they lie in the log, without the final record
 * @param choices the number of choices in the request
 * @returns one list of tokens per choice
 * @throws TypeError or SyntaxError for records that no worker has written
 */
export function tokensIn(records: readonly string[], choices: number): number[][] {
  const tokens = Array.from({ length: choices }, (): number[] => []);
  for (const record of records) {
    const { choices: deltas } = JSON.parse(record) as { readonly choices?: unknown };
    if (!Array.isArray(deltas)) throw new TypeError("a record without choices");
    for (const delta of deltas as unknown[]) add(delta, tokens);
  }
  return tokens;
}

function add(delta: unknown, tokens: readonly number[][]): void {
  const { index, tokens: drawn } = delta as { readonly index?: unknown; readonly tokens?: unknown };
  const into = typeof index === "number" ? tokens[index] : undefined;
  if (into === undefined || !Array.isArray(drawn)) throw new TypeError("a record of other choices");
  for (const token of drawn as unknown[]) {
    if (typeof token !== "number" || !Number.isSafeInteger(token) || token < 0) throw new TypeError("no token");
    into.push(token);
  }
}
