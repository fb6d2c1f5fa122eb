/**
 * The sums of one model version in this worker since its start, for statistics of the whole fleet.
 * The page of metrics has cells of its own, because versions beyond a limit share these.
 */
import type { NamedPart, Reporting } from "#shared/queue/processes/reports.js";
import {
  LAST_RESPONSE,
  responseSums,
  RESPONSES_A_PART,
  runSums,
  subjectOf,
  timeBounds,
  versionSums,
  type ReportPart,
} from "#shared/queue/pieces/report.js";

/** The sums of a request that ended with a result, times in ms. */
export interface RequestTimes {
  readonly requestMs: number;
  readonly queueMs: number;
  readonly inputMs: number;
  readonly inferMs: number;
  readonly outputMs: number;
}

type VersionSum = (typeof versionSums)[number];

const at = Object.fromEntries(versionSums.map((name, i) => [name, i])) as Readonly<Record<VersionSum, number>>;

export class ModelReport implements Reporting {
  readonly #model: Pick<ReportPart, "model" | "version">;
  readonly #version = new Float64Array(versionSums.length);
  /** By the number of rows. */
  readonly #runs = new Map<number, Float64Array>();
  /** By the first index. */
  readonly #responses = new Map<number, Float64Array>();
  readonly #times = new Float64Array(timeBounds.length + 1);
  /** The jobs that the worker holds; undefined if it has never held one. */
  #jobs: number | undefined;
  #lastAt: number | undefined;
  #changes = 0;
  #tokens = 0;
  #busyMs = 0;
  readonly #caches: (() => number)[] = [];

  constructor(model: Pick<ReportPart, "model" | "version">) {
    this.#model = model;
  }

  /** Another number after each change. */
  get changes(): number {
    return this.#changes;
  }

  /** As `model/version`. */
  get name(): string {
    return subjectOf({ ...this.#model, part: { of: "version" } });
  }

  /** What the model has done since the start, as the load of the worker counts it. */
  get work(): { readonly steps: number; readonly tokens: number; readonly busyMs: number } {
    return { steps: this.#version[at.success] as number, tokens: this.#tokens, busyMs: this.#busyMs };
  }

  /** Bytes of what the worker keeps in memory for the model beside its weights. */
  get cachedBytes(): number {
    return this.#caches.reduce((sum, read) => sum + read(), 0);
  }

  caches(read: () => number): void {
    this.#caches.push(read);
  }

  /** Notes time in which the model ran. */
  busy(ms: number): void {
    this.#busyMs += ms;
  }

  /** Counts a run of the model, before its outputs are taken apart. */
  ran(rows: number, inputMs: number, ranMs: number): void {
    this.#add("runs", 1);
    const sums = sumsAt(this.#runs, rows, runSums.length);
    addTo(sums, 0, 1);
    addTo(sums, 1, inputMs * US_PER_MS);
    addTo(sums, 2, ranMs * US_PER_MS);
  }

  /** Counts the time in which the outputs of such a run were taken apart. */
  tookApart(rows: number, outputMs: number): void {
    this.#changes++;
    addTo(sumsAt(this.#runs, rows, runSums.length), 3, outputMs * US_PER_MS);
  }

  /** @param now on `World.now()`'s clock */
  succeeded(rows: number, now: number): void {
    this.#add("success", 1);
    this.#add("rows", rows);
    this.#lastAt = now;
  }

  /** Counts the times of a request that succeeded. */
  took({ requestMs, queueMs, inputMs, inferMs, outputMs }: RequestTimes): void {
    let bucket = 0;
    while (bucket < timeBounds.length && requestMs > (timeBounds[bucket] as number)) bucket++;
    addTo(this.#times, bucket, 1);
    this.#add("requestUs", requestMs * US_PER_MS);
    this.#add("queueUs", queueMs * US_PER_MS);
    this.#add("inputUs", inputMs * US_PER_MS);
    this.#add("inferUs", inferMs * US_PER_MS);
    this.#add("outputUs", outputMs * US_PER_MS);
  }

  /**
   * @param requestMs from the admission to the commit; 0 if that is unknown
   * @param now on `World.now()`'s clock
   */
  failed(requestMs: number, now: number): void {
    this.#add("fail", 1);
    this.#add("failUs", requestMs * US_PER_MS);
    this.#lastAt = now;
  }

  /** Counts the takeover of a request of a worker that is gone. */
  tookOver(): void {
    this.#add("takeovers", 1);
  }

  /** Notes how many jobs the worker holds now. */
  holds(jobs: number): void {
    this.#changes++;
    this.#jobs = jobs;
  }

  /**
   * Counts a response of a generator.
   * @param ms since the response before
   */
  responded(index: number, how: "success" | "fail" | "cancel", ms: number): void {
    this.#changes++;
    if (how === "success") this.#tokens++;
    const counted = Math.min(index, LAST_RESPONSE);
    const first = counted - (counted % RESPONSES_A_PART);
    const sums = sumsAt(this.#responses, first, RESPONSES_A_PART * responseSums.length);
    const place = (counted - first) * responseSums.length + responseSums.indexOf(how);
    addTo(sums, place, 1);
    addTo(sums, place + 1, ms * US_PER_MS);
  }

  /** The part that nearly every request changes comes first. */
  parts(): NamedPart[] {
    const named = (part: ReportPart["part"], sums: Float64Array, lastAt?: number): NamedPart => ({
      subject: subjectOf({ ...this.#model, part }),
      sums: Array.from(sums, whole),
      lastAt,
    });
    const jobs = this.#jobs === undefined ? [] : [named({ of: "jobs", n: 0 }, Float64Array.of(this.#jobs))];
    return [
      named({ of: "version" }, this.#version, this.#lastAt),
      ...jobs.map((part) => ({ ...part, isNow: true })),
      named({ of: "times", n: 0 }, this.#times),
      ...Array.from(this.#runs, ([n, sums]) => named({ of: "runs", n }, sums)),
      ...Array.from(this.#responses, ([n, sums]) => named({ of: "responses", n }, sums)),
    ];
  }

  #add(name: VersionSum, value: number): void {
    this.#changes++;
    addTo(this.#version, at[name], value);
  }
}

const US_PER_MS = 1_000;

function sumsAt(all: Map<number, Float64Array>, n: number, length: number): Float64Array {
  let sums = all.get(n);
  if (sums === undefined) all.set(n, (sums = new Float64Array(length)));
  return sums;
}

/** Leaves out a time that a clock without a reading made. */
function addTo(sums: Float64Array, place: number, value: number): void {
  if (Number.isFinite(value) && value > 0) sums[place] = (sums[place] as number) + value;
}

function whole(sum: number): number {
  return Math.min(Math.round(sum), Number.MAX_SAFE_INTEGER);
}
