/**
 * The figures of one generator in this worker. A token counts when its record is in the log, so a
 * token that a worker computes again after a takeover counts once. The first token's worker counts
 * the prompt, and the worker that commits the end counts the whole generation.
 */
import { readOutcome } from "#shared/contract/outcome.js";
import { cells as ofProcess, type Buckets, type Cell, type Cells } from "#shared/metrics/cells.js";
import type { FamilyName } from "#shared/metrics/families.js";
import type { TimedIteration } from "../engine/protocol.js";
import type { Held } from "../lane/holdings.js";
import type { CountedModel } from "../lane/counts.js";
import type { ModelReport } from "../lane/model-report.js";
import type { Settled } from "../lane/settle.js";

/** How a generation can end. */
const reasons = ["stop", "length", "cancelled", "expired", "error"] as const;
type Reason = (typeof reasons)[number];

/** A stream at this worker, for its figures. Times are on `performance.now()`'s clock. */
export class StreamFigures {
  /** When the engine got the stream; undefined if it never did. */
  joinedAt: number | undefined;
  /** When the engine gave its first and its newest record here. */
  firstAt: number | undefined;
  heardAt = 0;
  /** When the newest record came into the log from here; undefined before. */
  appendedAt: number | undefined;
  /** Whether the log has a token, from any worker; known at the end of a stream with an error. */
  hasTokens = false;
  /** Tokens of the prompt, and those that were in a cache. */
  prompt = 0;
  cached = 0;
  /** Why the first choice ended; undefined while the stream has no result. */
  finish: "stop" | "length" | undefined;

  /** Notes a record of the engine. */
  heard(now: number): void {
    this.firstAt ??= now;
    this.heardAt = now;
  }
}

/** A stream with its figures. */
interface CountedStream {
  readonly held: Pick<Held, "admittedAt">;
  readonly figures: StreamFigures;
  readonly ranMs: number;
}

/** Records of a stream that are in the log now. */
export interface AppendedRecords {
  /** Index of the first record. */
  readonly first: number;
  readonly records: number;
  readonly tokens: number;
  readonly bytes: number;
}

export class StreamCounts {
  readonly #cells: Cells;
  readonly #passes: Cell;
  readonly #busySeconds: Cell;
  readonly #iterationTokens: Buckets;
  readonly #tokens: Cell;
  readonly #promptTokens: Cell;
  readonly #hits: Cell;
  readonly #misses: Cell;
  readonly #logBytes: Cell;
  readonly #firstMs: Buckets;
  readonly #firstSeconds: Buckets;
  readonly #betweenSeconds: Buckets;
  readonly #queueSeconds: Buckets;
  readonly #prefillSeconds: Buckets;
  readonly #decodeSeconds: Buckets;
  readonly #wholeSeconds: Buckets;
  readonly #requestUs: Cell;
  readonly #queueUs: Cell;
  readonly #inferUs: Cell;
  readonly #expired: Readonly<Record<"queue" | "run" | "stream", Cell>>;
  readonly #unread: Cell;
  readonly #ends: Readonly<Record<Reason, Cell>>;
  readonly #show: (name: FamilyName, read: () => number) => void;
  readonly #report: ModelReport | undefined;
  #cacheBytes = 0;

  /** @param report of the model; absent if nothing reports */
  constructor({ model, version }: CountedModel, report?: ModelReport, cells: Cells = ofProcess) {
    const labels = cells.modelLabels(model, version);
    const one = (name: FamilyName) => cells.counter(name, labels);
    this.#report = report;
    const times = (name: FamilyName) => cells.histogram(name, labels);
    const prefix = (result: string) => cells.counter("baton_prefix_cache_tokens_total", { ...labels, result });
    this.#cells = cells;
    this.#passes = one("nv_inference_exec_count");
    this.#busySeconds = one("baton_model_busy_seconds_total");
    this.#iterationTokens = times("baton_iteration_tokens");
    this.#tokens = one("baton_generated_tokens_total");
    this.#promptTokens = one("baton_prompt_tokens_total");
    this.#hits = prefix("hit");
    this.#misses = prefix("miss");
    this.#logBytes = one("baton_log_bytes_total");
    this.#firstMs = times("nv_inference_first_response_histogram_ms");
    this.#firstSeconds = times("baton_time_to_first_token_seconds");
    this.#betweenSeconds = times("baton_inter_token_seconds");
    this.#queueSeconds = times("baton_generation_queue_seconds");
    this.#prefillSeconds = times("baton_prefill_seconds");
    this.#decodeSeconds = times("baton_decode_seconds");
    this.#wholeSeconds = times("baton_generation_seconds");
    this.#requestUs = one("nv_inference_request_duration_us");
    this.#queueUs = one("nv_inference_queue_duration_us");
    this.#inferUs = one("nv_inference_compute_infer_duration_us");
    // The parts of a request's time that only a batch of tensors has.
    one("nv_inference_compute_input_duration_us");
    one("nv_inference_compute_output_duration_us");
    const expired = (where: string) => cells.counter("baton_expired_total", { ...labels, where });
    this.#expired = { queue: expired("queue"), run: expired("run"), stream: expired("stream") };
    this.#unread = cells.counter("baton_cancelled_total", { ...labels, why: "unread" });
    this.#ends = Object.fromEntries(
      reasons.map((reason) => [reason, cells.counter("baton_generations_total", { ...labels, reason })]),
    ) as Record<Reason, Cell>;
    this.#show = (name, read) => cells.show(name, labels, read);
  }

  /** Shows the values that each page reads anew. */
  show(read: { running: () => number; waiting: () => number; kvBytes: number }): void {
    const { running, waiting, kvBytes } = read;
    this.#show("baton_streams_running", running);
    this.#show("baton_streams_waiting", waiting);
    // Without a stream in the engine no iteration tells that the caches are free.
    const usedBytes = () => (running() === 0 ? 0 : this.#cacheBytes);
    this.#show("baton_kv_cache_used_ratio", () => usedBytes() / kvBytes);
    this.#report?.caches(usedBytes);
  }

  iterated({ passes, computed, cacheBytes, ranMs }: TimedIteration): void {
    const cells = this.#cells;
    this.#cacheBytes = cacheBytes;
    if (passes === 0) return;
    cells.add(this.#passes, passes);
    this.#report?.busy(ranMs);
    cells.add(this.#busySeconds, seconds(ranMs));
    cells.observe(this.#iterationTokens, computed);
  }

  /** Counts records that are in the log since `now`. */
  appended({ held, figures }: CountedStream, { first, records, tokens, bytes }: AppendedRecords, now: number): void {
    const cells = this.#cells;
    const { appendedAt } = figures;
    figures.appendedAt = now;
    cells.add(this.#logBytes, bytes);
    if (tokens === 0) return;
    cells.add(this.#tokens, tokens);
    if (first === 0) this.#begun(held.admittedAt, figures, now);
    else if (appendedAt !== undefined) cells.observe(this.#betweenSeconds, seconds(now - appendedAt));
    // Records that came into the log together have no time between them.
    if (records > 1) cells.observe(this.#betweenSeconds, 0, records - 1);
  }

  /** Counts a stream whose outcome took effect at `now`. */
  ended({ held, figures, ranMs }: CountedStream, { outcome }: Pick<Settled, "outcome">, now: number): void {
    const cells = this.#cells;
    const { kind, body } = outcome;
    if (kind === "error") {
      const read = readOutcome(kind, body);
      const code = read.kind === "error" ? read.code : undefined;
      if (code === "cancelled") cells.add(this.#unread);
      if (code === "expired") {
        const { joinedAt, hasTokens } = figures;
        cells.add(this.#expired[hasTokens ? "stream" : joinedAt === undefined ? "queue" : "run"]);
      }
      return cells.add(this.#ends[code === "cancelled" || code === "expired" ? code : "error"]);
    }
    const { joinedAt, firstAt, heardAt, finish = "stop" } = figures;
    cells.add(this.#ends[finish]);
    const wholeMs = Math.max(0, now - held.admittedAt);
    cells.observe(this.#wholeSeconds, seconds(wholeMs));
    cells.add(this.#requestUs, microseconds(wholeMs));
    cells.add(this.#inferUs, microseconds(ranMs));
    if (joinedAt !== undefined) cells.add(this.#queueUs, microseconds(Math.max(0, joinedAt - held.admittedAt)));
    if (firstAt !== undefined) cells.observe(this.#decodeSeconds, seconds(heardAt - firstAt));
  }

  /** Counts the first token of a stream. */
  #begun(
    admittedAt: number,
    { joinedAt = admittedAt, firstAt = joinedAt, prompt, cached }: StreamFigures,
    now: number,
  ) {
    const cells = this.#cells;
    const firstMs = Math.max(0, now - admittedAt);
    cells.observe(this.#firstMs, firstMs);
    cells.observe(this.#firstSeconds, seconds(firstMs));
    cells.observe(this.#queueSeconds, seconds(Math.max(0, joinedAt - admittedAt)));
    cells.observe(this.#prefillSeconds, seconds(firstAt - joinedAt));
    cells.add(this.#promptTokens, prompt);
    cells.add(this.#hits, cached);
    cells.add(this.#misses, prompt - cached);
  }
}

function seconds(ms: number): number {
  return ms / 1_000;
}

/** Triton's counters of microseconds are whole numbers. */
function microseconds(ms: number): number {
  return Math.round(ms * 1_000);
}
