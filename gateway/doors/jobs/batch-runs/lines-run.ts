/**
 * Runs the lines of a batch, from the first line that is not done to the end of the file, until a
 * client cancels the batch, or until the process stops. Many lines are under way at a time. Their
 * number depends on the workers, the batch's pace, the tenant's share of the process, and the
 * memory.
 */
import { fixedError } from "#shared/errors.js";
import { readDuplicates } from "#shared/queue/batches/batches.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import type { Batch } from "../../../batches/batch.js";
import { LineCutter, type Line } from "../../../batches/json-lines.js";
import { readLine, type LineFault } from "../../../batches/line.js";
import type { LineAsker } from "./ask-line.js";
import type { BatchFiles } from "./batch-files.js";
import type { LineLimits } from "./line-limits.js";
import type { LineResults } from "./line-results.js";
import { answerLine, faultLine, isForNow, lineId } from "./line-text.js";
import { Pace, pauseBefore } from "./pace.js";
import type { RunRecord } from "./run-record.js";
import type { Shares } from "./shares.js";
import { isMarked, MOST_LINE_BYTES } from "./validate.js";

export interface LineSettings {
  readonly redis: RedisClient;
  readonly files: BatchFiles;
  readonly asker: LineAsker;
  /** Shares the lines of all batches that are under way in this process among tenants. */
  readonly lines: Shares;
  /** Limits the lines of each batch to the number that workers can use. */
  readonly limits: LineLimits;
  /** Bytes of the lines of all batches that are under way in this process. */
  readonly held: { bytes: number };
  /** Most lines of one batch that are under way. */
  readonly mostLines: number;
}

/** The run reads at most so many lines beyond the first line that is not done. */
const MOST_WINDOW = 512;
/**
 * Most bytes of lines under way in a process. Beyond this, a batch has one line under way at a
 * time, so that each batch continues.
 */
const MOST_BYTES = 64 * 1024 * 1024;
/**
 * Interval at which the run reads the record, in ms, because a client may have cancelled the batch.
 */
const LOOK_EVERY_MS = 500;
/** Interval at which the run checks whether it should write results, in ms. */
const KEEP_EVERY_MS = 100;
/** Time that lines under way have to end, in ms, after a cancellation or after the batch's time. */
const GRACE_MS = 5_000;

const expired: LineFault = {
  code: "batch_expired",
  message: "the batch's completion window was over before this request was run",
};

const binary: LineFault = {
  code: "invalid_body",
  message: "a batch has answers in JSON only: ask for no binary outputs",
};

export class LinesRun {
  readonly #settings: LineSettings;
  readonly #record: RunRecord;
  readonly #results: LineResults;
  readonly #pace: Pace;
  /** For each line under way, the function that makes it give up. */
  readonly #underWay = new Set<() => void>();
  /** Aborted when the run begins no further line. */
  readonly #stop = new AbortController();
  /** Aborted when, in addition, no line is under way any more. */
  readonly #over = new AbortController();
  /** The first error. */
  #error: unknown;
  /** Wakes the callers that wait until a line has ended. */
  #wake: (() => void)[] = [];

  constructor(settings: LineSettings, record: RunRecord, results: LineResults) {
    this.#settings = settings;
    this.#record = record;
    this.#results = results;
    this.#pace = new Pace(settings.mostLines);
  }

  /**
   * A caller may call this once. At the return, the store has the results of the lines.
   * @throws LostRun, InferenceError
   */
  async run(signal: AbortSignal): Promise<void> {
    const leave = () => this.#stopAll();
    if (this.#batch.status === "cancelling") this.#stop.abort();
    signal.addEventListener("abort", leave, { once: true });
    const looking = this.#look().catch((error: unknown) => this.#fail(error));
    const keeping = this.#keepWhileRunning().catch((error: unknown) => this.#fail(error));
    try {
      await this.#runAll();
    } catch (error) {
      this.#fail(error);
    } finally {
      signal.removeEventListener("abort", leave);
      this.#over.abort();
      await Promise.all([looking, keeping]);
    }
    if (this.#error !== undefined) throw this.#error;
    await this.#results.keep();
  }

  get #batch(): Batch {
    return this.#record.batch;
  }

  async #runAll(): Promise<void> {
    const { redis, files } = this.#settings;
    const duplicates = await readDuplicates(redis, this.#batch);
    const { from } = this.#results;
    const cutter = new LineCutter(from, MOST_LINE_BYTES);
    const file = await files.read(this.#batch, from.offset);
    if (file === undefined) throw fixedError("unknown_file", "usual");
    for await (const chunk of file) {
      for (const one of cutter.push(chunk)) await this.#begin(one, duplicates);
      if (this.#stop.signal.aborted) break;
    }
    if (!this.#stop.signal.aborted) for (const one of cutter.end()) await this.#begin(one, duplicates);
    await this.#untilDone(() => this.#underWay.size === 0);
  }

  /** Waits until there is room for the line, and begins it. */
  async #begin(line: Line, duplicates: Buffer | undefined): Promise<void> {
    const { lines, limits, held } = this.#settings;
    const { tenant, endpoint, id } = this.#batch;
    const stopped = () => this.#stop.signal.aborted;
    if (stopped() || !this.#results.read(line)) return;
    const { number } = line;
    const bytes = line.bytes?.length ?? 0;
    const name = lineId(id, number);
    const read = readLine(line, endpoint, isMarked(duplicates, number));
    if (read.fault !== undefined) {
      this.#results.note({ number, text: faultLine(name, read.customId, read.fault, number), isGood: false });
      return this.#untilDone(() => this.#results.window < MOST_WINDOW && !this.#results.isFull);
    }
    const { customId, body } = read;
    await this.#untilDone(
      () =>
        this.#underWay.size < Math.min(this.#pace.limit, limits.mostOf(id)) &&
        this.#results.window <= MOST_WINDOW &&
        (this.#underWay.size === 0 || this.#settings.held.bytes + bytes <= MOST_BYTES) &&
        !this.#results.isFull,
    );
    if (stopped()) return;
    if (this.#record.isOver) {
      this.#results.note({ number, text: faultLine(name, customId, expired, number), isGood: false });
      return;
    }
    if (!(await lines.take(tenant, this.#stop.signal))) return;
    held.bytes += bytes;
    void this.#ask(number, name, customId, body)
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        held.bytes -= bytes;
        lines.release(tenant);
        this.#wakeAll();
      });
  }

  async #ask(number: number, name: string, customId: string, body: Buffer): Promise<void> {
    const { tenant, endpoint, models, id } = this.#batch;
    const key = `${id}:${number}`;
    const request = { tenant, path: endpoint, models, key, body };
    const givenUp = new AbortController();
    const giveUp = () => givenUp.abort();
    this.#underWay.add(giveUp);
    this.#results.asking(key);
    try {
      for (let tries = 0; !givenUp.signal.aborted; tries++) {
        const answer = await unlessAborted(this.#settings.asker.ask(request), givenUp.signal);
        if (answer === undefined) break;
        if (isForNow(answer)) {
          this.#pace.refused(performance.now());
          // If a line finds no room before a cancellation, the line has not run.
          if (this.#stop.signal.aborted) return;
          await delay(pauseBefore(tries, Math.random()), givenUp.signal);
          continue;
        }
        this.#pace.answered();
        if (answer.body === undefined) {
          this.#results.note({ number, text: faultLine(name, customId, binary, number), isGood: false, key });
        } else {
          const isGood = answer.status >= 200 && answer.status < 300;
          const text = answerLine(name, customId, { ...answer, body: answer.body });
          this.#results.note({ number, text, isGood, key });
        }
        return;
      }
      if (this.#record.isOver && this.#batch.status === "in_progress") {
        this.#results.note({ number, text: faultLine(name, customId, expired, number), isGood: false, key });
      }
    } finally {
      this.#underWay.delete(giveUp);
    }
  }

  async #keepWhileRunning(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await delay(this.#results.isLarge ? 0 : KEEP_EVERY_MS, signal);
      if (!this.#results.isDue) continue;
      await this.#results.keep();
      this.#wakeAll();
    }
  }

  /** Notices a cancellation, a newer run of the batch, and the end of the batch's time. */
  async #look(): Promise<void> {
    const { signal } = this.#over;
    let overAt: number | undefined;
    while (!signal.aborted) {
      await this.#record.look();
      const isCancelled = this.#batch.status === "cancelling";
      const now = performance.now();
      if (isCancelled || this.#record.isOver) overAt ??= now;
      if (isCancelled) this.#stop.abort();
      if (overAt !== undefined && now - overAt > GRACE_MS) for (const giveUp of this.#underWay) giveUp();
      this.#wakeAll();
      await delay(LOOK_EVERY_MS, signal);
    }
  }

  /**
   * Resolves when this holds, when a line has failed, or when the run stops and no line is under
   * way.
   */
  async #untilDone(holds: () => boolean): Promise<void> {
    while (!holds() && this.#error === undefined) {
      if (this.#stop.signal.aborted && this.#underWay.size === 0) return;
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  /**
   * Stops at once. The fleet still finishes the lines under way, and a later run finds their
   * outcomes.
   */
  #stopAll(): void {
    this.#stop.abort();
    for (const giveUp of this.#underWay) giveUp();
    this.#wakeAll();
  }

  #fail(error: unknown): void {
    this.#error ??= error;
    this.#stopAll();
  }
}

/** @returns undefined if the signal aborts first */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined);
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
