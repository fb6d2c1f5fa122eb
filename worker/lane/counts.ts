/**
 * The figures of one model version in this worker. Each cell is found once, when the model loads.
 * The worker counts a request when the commit took effect here, so a redelivery, a repetition under
 * an Idempotency-Key and the late commit of another worker's request count nothing. Times are read
 * once for each batch and stage.
 */
import { readOutcome } from "#shared/contract/outcome.js";
import type { ErrorCode } from "#shared/errors.js";
import { cells as ofProcess, type Buckets, type Cell, type Cells } from "#shared/metrics/cells.js";
import type { FamilyName } from "#shared/metrics/families.js";
import type { Delivery } from "#shared/queue/entry.js";
import { fates, type Fate } from "#shared/queue/work/commit/settlement.js";
import { FIRST_RESPONSE } from "../models/validate/figures.js";
import { statePlaces, type LookUpCounts, type StatePlace } from "../sequence/states.js";
import type { Held, StepEnd } from "./holdings.js";
import { ModelReport } from "./model-report.js";
import type { Settled } from "./settle.js";

/** The times of a run that several requests share, in ms. */
export interface RunTimes {
  /** When the model began, on `performance.now()`'s clock. */
  readonly begunAt: number;
  /** To look up states and stack inputs. */
  readonly inputMs: number;
  readonly ranMs: number;
  /** To take outputs apart; 0 until that is done. */
  outputMs: number;
}

/** What a settlement knows of the run of its request. */
export interface Measured {
  readonly run: RunTimes;
  readonly rows: number;
  /** On `performance.now()`'s clock. */
  readonly admittedAt: number;
}

/** The same of a stream. */
export interface Generated {
  /** When the worker took the stream on, on `performance.now()`'s clock. */
  readonly begunAt: number;
  /** The model's time for this stream. */
  readonly ranMs: number;
}

/** Triton's words for why a request failed. */
const reasons = ["BACKEND", "CANCELED", "REJECTED", "OTHER"] as const;

/** Why a batch takes no further request. */
export const closings = ["full", "preferred", "enough", "shape", "sequence", "delay", "alone", "unbatched"] as const;
export type Closing = (typeof closings)[number];

/** The model, and whether it answers token by token. */
export interface CountedModel {
  readonly model: string;
  readonly version: string;
  readonly streams?: boolean | undefined;
  /** Whether the model has sequences, and so states and checkpoints; absent: yes. */
  readonly sequences?: boolean | undefined;
  /** How many batches run side by side; absent: one, or none if the model gives streams. */
  readonly instances?: number | undefined;
}

interface StateCells {
  readonly checkpoints: Cell;
  readonly checkpointBytes: Cell;
  readonly lookups: Readonly<Record<StatePlace, Cell>>;
}

export class ModelCounts implements LookUpCounts {
  readonly #cells: Cells;
  readonly #success: Cell;
  readonly #rows: Cell;
  readonly #failures: Readonly<Record<(typeof reasons)[number], Cell>>;
  readonly #fates: Readonly<Record<Fate, Cell>>;
  readonly #commitSeconds: Buckets;
  readonly #setAside: Cell;
  /** Undefined for a model without states. */
  readonly #states: StateCells | undefined;
  readonly #expired: Cell;
  readonly #takeovers: Cell;
  readonly #recovery: Buckets;
  /** The last sign of life of the workers that had requests before. */
  readonly #takenOver = new WeakMap<Delivery, number>();
  /** Whether there was a takeover yet. Until then no request needs a look into the map. */
  #hasTakenOver = false;
  readonly #show: (name: FamilyName, read: () => number, labels?: Readonly<Record<string, string>>) => void;
  /** The same for the statistics of the whole fleet. */
  readonly report: ModelReport;
  /** Undefined for a generator, whose runs are no batches. */
  readonly batches: BatchCounts | undefined;

  constructor({ model, version, streams, sequences = true, instances }: CountedModel, cells: Cells = ofProcess) {
    const labels = cells.modelLabels(model, version);
    const one = (name: FamilyName) => cells.counter(name, labels);
    const each = <Word extends string>(name: FamilyName, label: string, words: readonly Word[]) =>
      Object.fromEntries(words.map((word) => [word, cells.counter(name, { ...labels, [label]: word })])) as Record<
        Word,
        Cell
      >;
    this.#cells = cells;
    this.#success = one("nv_inference_request_success");
    this.#rows = one("nv_inference_count");
    this.#failures = each("nv_inference_request_failure", "reason", reasons);
    this.#fates = each("baton_commits_total", "fate", fates);
    this.#commitSeconds = cells.histogram("baton_commit_duration_seconds");
    this.#states = sequences
      ? {
          checkpoints: one("baton_checkpoints_total"),
          checkpointBytes: one("baton_checkpoint_bytes_total"),
          lookups: each("baton_state_lookups_total", "from", statePlaces),
        }
      : undefined;
    this.#setAside = one("baton_set_aside_total");
    // A batch takes no request behind its deadline. A generator counts by itself.
    this.#expired = cells.counter("baton_expired_total", { ...labels, where: "queue" });
    const of = streams === true ? "stream" : "step";
    this.#takeovers = cells.counter("baton_takeovers_total", { ...labels, of });
    this.#recovery = cells.histogram("baton_recovery_seconds", labels);
    this.#show = (name, read, more) => cells.show(name, { ...labels, ...more }, read);
    this.report = new ModelReport({ model, version });
    const runsBatches = instances !== undefined || streams !== true;
    this.batches = runsBatches ? new BatchCounts(cells, labels, this.report, instances ?? 1) : undefined;
  }

  /** Shows a value of the worker that each page reads anew. */
  show(name: FamilyName, read: () => number, labels?: Readonly<Record<string, string>>): void {
    this.#show(name, read, labels);
  }

  lookedUp(from: StatePlace): void {
    if (this.#states !== undefined) this.#cells.add(this.#states.lookups[from]);
  }

  /** Notes requests of a worker that is gone. @param seenAt its last sign of life */
  takenOver(deliveries: readonly Delivery[], seenAt: number): void {
    for (const delivery of deliveries) this.#takenOver.set(delivery, seenAt);
    this.#hasTakenOver = true;
  }

  /** Counts the takeover of a request that began at `now`, if the request was another worker's. */
  recovered(delivery: Delivery, now = 0): void {
    if (!this.#hasTakenOver) return;
    const seenAt = this.#takenOver.get(delivery);
    if (seenAt === undefined) return;
    this.#takenOver.delete(delivery);
    this.#cells.add(this.#takeovers);
    this.report.tookOver();
    this.#cells.observe(this.#recovery, seconds(Math.max(0, now - seenAt)));
  }

  setAside(requests: number): void {
    this.#cells.add(this.#setAside, requests);
  }

  /**
   * Counts a commit.
   * @param begunAt the begin of the commit, and `endedAt` its end, on `performance.now()`'s clock
   */
  committed(settled: readonly Settled[], words: readonly Fate[], begunAt: number, endedAt: number): void {
    const cells = this.#cells;
    cells.observe(this.#commitSeconds, seconds(endedAt - begunAt));
    for (let i = 0; i < settled.length; i++) {
      const one = settled[i] as Settled;
      const fate = words[i] as Fate;
      cells.add(this.#fates[fate]);
      if (fate !== "committed") continue;
      this.recovered(one.delivery, one.measured?.run.begunAt ?? begunAt);
      this.#tookEffect(one, endedAt);
    }
  }

  #tookEffect({ outcome, state, deadReason, measured, generated, admittedAt }: Settled, endedAt: number): void {
    const cells = this.#cells;
    if (state.action === "put" && this.#states !== undefined) {
      cells.add(this.#states.checkpoints);
      cells.add(this.#states.checkpointBytes, state.checkpoint.length);
    }
    if (deadReason !== undefined) cells.add(this.#setAside);
    if (outcome.kind === "error") {
      const { kind, body } = outcome;
      const read = readOutcome(kind, body);
      if (read.kind === "error" && read.code === "expired" && this.batches !== undefined) cells.add(this.#expired);
      this.report.failed(endedAt - (admittedAt ?? endedAt), endedAt);
      return cells.add(this.#failures[read.kind === "error" ? reasonOf(read.code) : "OTHER"]);
    }
    if (generated !== undefined) this.#generated(generated, admittedAt ?? endedAt, endedAt);
    cells.add(this.#success);
    cells.add(this.#rows, measured?.rows ?? 1);
    this.report.succeeded(measured?.rows ?? 1, endedAt);
    if (measured !== undefined) this.batches?.ended(measured, endedAt);
  }

  /** Counts the end of a request that an ensemble has made, as that of one of the model's lanes. */
  called({ rows, admittedAt }: Pick<Held, "rows" | "admittedAt">, end: StepEnd, endedAt: number): void {
    const cells = this.#cells;
    if (end.kind === "error") {
      this.report.failed(endedAt - admittedAt, endedAt);
      return cells.add(this.#failures[reasonOf(end.error.code)]);
    }
    cells.add(this.#success);
    cells.add(this.#rows, rows);
    this.report.succeeded(rows, endedAt);
    if (this.batches === undefined) this.#generated(end.run, admittedAt, endedAt);
    else this.batches.ended({ run: end.run, rows, admittedAt }, endedAt);
  }

  /** Counts a stream as a run of its own, though the engine runs many streams together. */
  #generated({ begunAt, ranMs }: Generated, admittedAt: number, endedAt: number): void {
    const [requestMs, queueMs] = [endedAt - admittedAt, begunAt - admittedAt];
    this.report.ran(1, 0, ranMs);
    this.report.took({ requestMs, queueMs, inputMs: 0, inferMs: ranMs, outputMs: 0 });
  }
}

/** The figures of a tensor model's batches. */
export class BatchCounts {
  readonly #cells: Cells;
  readonly #runs: Cell;
  readonly #runRows: Buckets;
  readonly #busySeconds: Cell;
  readonly #closings: Readonly<Record<Closing, Cell>>;
  readonly #lateSeconds: Buckets;
  readonly #alone: Cell;
  readonly #requestUs: Cell;
  readonly #queueUs: Cell;
  readonly #inputUs: Cell;
  readonly #inferUs: Cell;
  readonly #outputUs: Cell;
  readonly #queueSeconds: Buckets;
  readonly #stepSeconds: Buckets;
  /** Undefined unless the model's configuration sets its buckets, because Triton has it off. */
  readonly #firstMs: Buckets | undefined;
  readonly #report: ModelReport;
  readonly #instances: number;

  constructor(cells: Cells, labels: Readonly<Record<string, string>>, report: ModelReport, instances: number) {
    const one = (name: FamilyName) => cells.counter(name, labels);
    this.#cells = cells;
    this.#runs = one("nv_inference_exec_count");
    this.#runRows = cells.histogram("baton_batch_rows", labels);
    this.#busySeconds = one("baton_model_busy_seconds_total");
    this.#closings = Object.fromEntries(
      closings.map((word) => [word, cells.counter("baton_batches_total", { ...labels, closed_by: word })]),
    ) as Record<Closing, Cell>;
    this.#lateSeconds = cells.histogram("baton_window_error_seconds", labels);
    this.#alone = one("baton_retries_alone_total");
    this.#requestUs = one("nv_inference_request_duration_us");
    this.#queueUs = one("nv_inference_queue_duration_us");
    this.#inputUs = one("nv_inference_compute_input_duration_us");
    this.#inferUs = one("nv_inference_compute_infer_duration_us");
    this.#outputUs = one("nv_inference_compute_output_duration_us");
    this.#queueSeconds = cells.histogram("baton_queue_seconds", labels);
    this.#stepSeconds = cells.histogram("baton_step_seconds", labels);
    const isAsked = cells.boundsOf(FIRST_RESPONSE, labels) !== undefined;
    this.#firstMs = isAsked ? cells.histogram(FIRST_RESPONSE, labels) : undefined;
    this.#report = report;
    this.#instances = instances;
  }

  /**
   * Counts a run of one of the model's instances, with or without success.
   * @param busyMs all instances together are busy for no more than the time that passes
   */
  ran(rows: number, inputMs: number, ranMs: number, busyMs = ranMs / this.#instances): void {
    const cells = this.#cells;
    this.#report.ran(rows, inputMs, ranMs);
    this.#report.busy(busyMs);
    cells.add(this.#runs);
    cells.observe(this.#runRows, rows);
    cells.add(this.#busySeconds, seconds(busyMs));
  }

  /** Counts the time in which the outputs of a run were taken apart. */
  tookApart(rows: number, outputMs: number): void {
    this.#report.tookApart(rows, outputMs);
  }

  /** Counts a batch that ran, once. */
  closed(by: Closing): void {
    this.#cells.add(this.#closings[by]);
    if (by === "alone") this.#cells.add(this.#alone);
  }

  /** @param ms by which a batch came later than the configured delay */
  late(ms: number): void {
    this.#cells.observe(this.#lateSeconds, seconds(ms));
  }

  /** Counts the times of a request whose result was committed. */
  ended({ run, admittedAt }: Measured, endedAt: number): void {
    const cells = this.#cells;
    const { begunAt, inputMs, ranMs, outputMs } = run;
    // The clocks of two machines may differ by more than a short wait.
    const queueMs = Math.max(0, begunAt - inputMs - admittedAt);
    const stepMs = Math.max(endedAt - begunAt + inputMs + queueMs, 0);
    cells.add(this.#requestUs, microseconds(stepMs));
    cells.add(this.#queueUs, microseconds(queueMs));
    cells.add(this.#inputUs, microseconds(inputMs));
    cells.add(this.#inferUs, microseconds(ranMs));
    cells.add(this.#outputUs, microseconds(outputMs));
    this.#report.took({ requestMs: stepMs, queueMs, inputMs, inferMs: ranMs, outputMs });
    cells.observe(this.#queueSeconds, seconds(queueMs));
    cells.observe(this.#stepSeconds, seconds(stepMs));
    if (this.#firstMs !== undefined) cells.observe(this.#firstMs, stepMs);
  }
}

function reasonOf(code: ErrorCode): (typeof reasons)[number] {
  if (code === "model_error" || code === "poison_request" || code.startsWith("state_")) return "BACKEND";
  if (code === "cancelled") return "CANCELED";
  return code === "expired" ? "REJECTED" : "OTHER";
}

function seconds(ms: number): number {
  return ms / 1_000;
}

/** Triton's counters of microseconds are whole numbers. */
function microseconds(ms: number): number {
  return Math.round(ms * 1_000);
}
