/**
 * One run of a batch by one process: from where its record says that it is, to its end or until the
 * process stops. The record is changed only by the run that was begun last, and each change says up
 * to which line all that came of it is kept; so a run that ends anywhere is gone on with by another
 * one, and no line is written twice. A line that was asked before and whose answer was not kept is
 * asked again under its own key, and so is not run again.
 */
import type { Logger } from "pino";
import { forgetDuplicates, readDuplicates, writeDuplicates } from "#shared/queue/batches/batches.js";
import { noteEnded } from "#shared/queue/batches/note-ended.js";
import { fixedError, InferenceError, type ErrorCode } from "#shared/errors.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import {
  advanced,
  endedAs,
  endingOf,
  hasEnded,
  viewOf,
  withStatus,
  type Batch,
  type Ending,
} from "../../batches/batch.js";
import type { Batches, ReadBatch } from "../../batches/batches.js";
import { LineCutter, type Line } from "../../batches/json-lines.js";
import { readLine, type LineFault } from "../../batches/line.js";
import { Progress } from "../../batches/progress.js";
import type { LineAsker } from "./ask-line.js";
import { storeFault, type BatchFiles } from "./batch-files.js";
import type { LineInference } from "./line-inference.js";
import { answerLine, faultLine, isForNow, lineId } from "./line-text.js";
import { Kept } from "./kept.js";
import { Pace, pauseBefore } from "./pace.js";
import type { Shares } from "./shares.js";
import { isMarked, MOST_LINE_BYTES, validate } from "./validate.js";

export interface RunSettings {
  readonly redis: RedisClient;
  readonly batches: Batches;
  readonly files: BatchFiles;
  readonly asker: LineAsker;
  readonly inference: LineInference;
  /** Lines of all batches that are under way in this process. */
  readonly lines: Shares;
  /** Files that are looked through at a time. */
  readonly validations: Shares;
  /** Most lines of one batch that are under way. */
  readonly mostLines: number;
  readonly log: Logger;
}

/** Lines are read up to so many beyond the first that is not done. */
const MOST_WINDOW = 512;
/** Bytes of lines that are under way in a batch; one line alone may have more. */
const MOST_BYTES = 32 * 1024 * 1024;
/** The record is looked at so often, in ms: somebody may have cancelled the batch. */
const LOOK_EVERY_MS = 500;
/** So often it is asked, in ms, whether what lines have given is to be written. */
const KEEP_EVERY_MS = 100;
/** What is under way when a batch is cancelled, or its time is over, has so long to end, in ms. */
const GRACE_MS = 5_000;
const MOST_TRIES = 20;

const expired: LineFault = {
  code: "batch_expired",
  message: "the batch's completion window was over before this request was run",
};

const binary: LineFault = {
  code: "invalid_body",
  message: "a batch has answers in JSON only: ask for no binary outputs",
};

/** What nobody but the tenant can change, and not by waiting. */
const endless: readonly ErrorCode[] = ["payload_too_large", "file_limit", "storage_full", "unknown_file"];

/** Somebody else runs the batch by now, or nobody any more. */
export class LostRun extends Error {
  override readonly name = "LostRun";
}

export class BatchRun {
  readonly #settings: RunSettings;
  #read: ReadBatch;
  readonly #pace: Pace;
  readonly #progress: Progress;
  readonly #kept: Kept;
  /** Lines that are under way, by what makes them give up. */
  readonly #underWay = new Set<() => void>();
  /** Keys of the lines that were asked and whose answers are not kept. */
  readonly #asked = new Set<string>();
  #bytes = 0;
  /** Aborted when no further line is to be begun. */
  readonly #stop = new AbortController();
  /** Aborted when no line is under way any more, either. */
  readonly #over = new AbortController();
  #error: unknown;
  /** Resolves those who wait until a line has ended. */
  #wake: (() => void)[] = [];

  private constructor(settings: RunSettings, read: ReadBatch) {
    this.#settings = settings;
    this.#read = read;
    this.#pace = new Pace(settings.mostLines);
    this.#progress = new Progress(read.batch.checkpoint);
    this.#kept = new Kept(settings.files, read.batch);
  }

  /**
   * Begins a run, which ends any other one of the batch.
   * @returns undefined where there is nothing to be done for it
   */
  static async begin(settings: RunSettings, tenant: string, id: string): Promise<BatchRun | undefined> {
    const { batches } = settings;
    for (let i = 0; i < MOST_TRIES; i++) {
      const found = await batches.read(tenant, id);
      if (found === undefined) return undefined;
      const begun = await batches.change(found, { ...found.batch, run: found.batch.run + 1 });
      if (begun !== undefined) return new BatchRun(settings, begun);
    }
    throw new Error("the batch is changed by others all the time");
  }

  get batch(): Batch {
    return this.#read.batch;
  }

  /**
   * Runs it to its end, or until `signal` aborts.
   * @throws LostRun
   */
  async run(signal: AbortSignal): Promise<void> {
    const { redis, batches, files } = this.#settings;
    try {
      if (!hasEnded(this.batch)) await files.use(this.batch);
      if (this.batch.status === "validating") await this.#validate();
      if (signal.aborted) return;
      if (this.batch.status === "in_progress" || this.batch.status === "cancelling") await this.#runLines(signal);
      if (signal.aborted) return;
      if (!hasEnded(this.batch)) await this.#finish(endingOf(this.batch, Date.now()));
    } catch (error) {
      if (error instanceof LostRun) await this.#forgetOwn();
      const fault = faultOf(error);
      if (fault === undefined) throw error;
      const files = await this.#kept.finishFailed(this.batch, (one) => faultOf(one) !== undefined);
      await this.#change((one) => ({ ...withStatus(one, "failed", Date.now()), ...files, faults: [fault] }));
    } finally {
      // What another run asks again is found under its key.
      for (const key of this.#asked) this.#settings.inference.forget(key);
    }
    await this.#tell();
    await this.#kept.forget(this.batch);
    await this.#forgetUnnoted(this.batch.run);
    await files.release(this.batch);
    await forgetDuplicates(redis, this.batch);
    await batches.close(this.#read);
  }

  /** Forgets what runs up to one of them have left that does not count. */
  async #forgetUnnoted(last: number): Promise<void> {
    const { swept = 0 } = this.batch;
    for (let run = swept + 1; run <= last; run++) await this.#kept.forgetUnnoted(this.batch, run);
  }

  /** Forgets what this run has written since another one has begun, which cannot know of it. */
  async #forgetOwn(): Promise<void> {
    const { batches, log } = this.#settings;
    const { tenant, id, run } = this.batch;
    try {
      const found = await batches.read(tenant, id);
      if (found !== undefined) await this.#kept.forgetUnnoted(found.batch, run);
    } catch (error) {
      log.debug({ batch: id, error: String(error) }, "what a lost run has written is left to the next one");
    }
  }

  async #validate(): Promise<void> {
    const { redis, files, validations } = this.#settings;
    const { tenant, expiresAt } = this.batch;
    await validations.take(tenant);
    try {
      const file = await files.read(this.batch, 0);
      const said =
        file === undefined
          ? { fault: { code: "file_not_found", message: "the input file is gone", line: null } }
          : await validate(file);
      if ("fault" in said) {
        await this.#change((one) => ({ ...withStatus(one, "failed", Date.now()), faults: [said.fault] }));
        return;
      }
      const { total, duplicates } = said;
      if (duplicates !== undefined) {
        const ttlMs = Math.max(expiresAt - Date.now(), 0) + 86_400_000;
        await writeDuplicates(redis, this.batch, duplicates, ttlMs);
      }
      await this.#change((one) =>
        one.status === "validating" ? { ...withStatus(one, "in_progress", Date.now()), total } : { ...one, total },
      );
    } finally {
      validations.release(tenant);
    }
  }

  async #runLines(signal: AbortSignal): Promise<void> {
    const { batch } = this;
    const { redis, files } = this.#settings;
    const leave = () => this.#stopAll();
    const last = batch.run - 1;
    await this.#forgetUnnoted(last);
    if (last > (batch.swept ?? 0)) await this.#change((one) => ({ ...one, swept: last }));
    if (batch.status === "cancelling") this.#stop.abort();
    signal.addEventListener("abort", leave, { once: true });
    const looking = this.#look().catch((error: unknown) => this.#fail(error));
    const keeping = this.#keepWhileRunning().catch((error: unknown) => this.#fail(error));
    try {
      const duplicates = await readDuplicates(redis, batch);
      const { offset, line } = this.#progress.checkpoint();
      const cutter = new LineCutter({ offset, line }, MOST_LINE_BYTES);
      const file = await files.read(batch, offset);
      if (file === undefined) throw fixedError("unknown_file", "usual");
      for await (const chunk of file) {
        for (const one of cutter.push(chunk)) await this.#begin(one, duplicates);
        if (this.#stop.signal.aborted) break;
      }
      if (!this.#stop.signal.aborted) for (const one of cutter.end()) await this.#begin(one, duplicates);
      await this.#untilDone(() => this.#underWay.size === 0);
    } catch (error) {
      this.#fail(error);
    } finally {
      signal.removeEventListener("abort", leave);
      this.#over.abort();
      await Promise.all([looking, keeping]);
    }
    if (this.#error !== undefined) throw this.#error;
    await this.#keep();
  }

  /** Waits until there is room for the line, and begins it. */
  async #begin(line: Line, duplicates: Buffer | undefined): Promise<void> {
    const { lines } = this.#settings;
    const { tenant, endpoint, id } = this.batch;
    const stopped = () => this.#stop.signal.aborted;
    if (stopped() || !this.#progress.read(line)) return;
    const bytes = line.bytes?.length ?? 0;
    const name = lineId(id, line.number);
    const read = readLine(line, endpoint, isMarked(duplicates, line.number));
    if (read.fault !== undefined) {
      this.#note(line.number, undefined, faultLine(name, read.customId, read.fault, line.number), false);
      return this.#untilDone(() => this.#progress.window < MOST_WINDOW && !this.#kept.isFull);
    }
    const { customId, body } = read;
    await this.#untilDone(
      () =>
        this.#underWay.size < this.#pace.limit &&
        this.#progress.window <= MOST_WINDOW &&
        (this.#bytes === 0 || this.#bytes + bytes <= MOST_BYTES) &&
        !this.#kept.isFull,
    );
    if (stopped()) return;
    if (Date.now() >= this.batch.expiresAt) {
      this.#note(line.number, undefined, faultLine(name, customId, expired, line.number), false);
      return;
    }
    await lines.take(tenant);
    if (stopped()) {
      lines.release(tenant);
      return;
    }
    this.#bytes += bytes;
    void this.#ask(line.number, name, customId, body)
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#bytes -= bytes;
        lines.release(tenant);
        this.#wakeAll();
      });
  }

  async #ask(number: number, name: string, customId: string, body: Buffer): Promise<void> {
    const { tenant, endpoint, id } = this.batch;
    const request = { tenant, path: endpoint, requestId: name, key: `${id}:${number}`, body };
    const givenUp = new AbortController();
    const giveUp = () => givenUp.abort();
    this.#underWay.add(giveUp);
    this.#asked.add(request.key);
    try {
      for (let tries = 0; !givenUp.signal.aborted; tries++) {
        const answer = await unlessAborted(this.#settings.asker.ask(request), givenUp.signal);
        if (answer === undefined) break;
        if (isForNow(answer)) {
          this.#pace.refused(performance.now());
          // Whoever is cancelled while there is no room has not been run.
          if (this.#stop.signal.aborted) return;
          await delay(pauseBefore(tries, Math.random()), givenUp.signal);
          continue;
        }
        this.#pace.answered();
        if (answer.body === undefined) {
          this.#note(number, request.key, faultLine(name, customId, binary, number), false);
        } else {
          const isGood = answer.status >= 200 && answer.status < 300;
          this.#note(number, request.key, answerLine(name, customId, { ...answer, body: answer.body }), isGood);
        }
        return;
      }
      if (Date.now() >= this.batch.expiresAt && this.batch.status === "in_progress") {
        this.#note(number, request.key, faultLine(name, customId, expired, number), false);
      }
    } finally {
      this.#underWay.delete(giveUp);
    }
  }

  #note(number: number, key: string | undefined, text: Buffer, isGood: boolean): void {
    this.#kept.add(text, isGood, key);
    this.#progress.done(number);
  }

  async #keepWhileRunning(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await delay(this.#kept.isLarge ? 0 : KEEP_EVERY_MS, signal);
      if (this.#kept.isDue(performance.now())) await this.#keep();
    }
  }

  /** Writes what lines have given, and then how far the batch is. */
  async #keep(): Promise<void> {
    const taken = this.#kept.take();
    if (taken === undefined) return;
    const checkpoint = this.#progress.checkpoint();
    const { completed, failed, bytes } = taken;
    const { output, errors } = await this.#kept.write(this.batch, taken);
    await this.#change((one) => advanced(one, { checkpoint, completed, failed, output, errors, bytes }));
    for (const key of taken.keys) {
      this.#settings.inference.release(key);
      this.#asked.delete(key);
    }
    this.#wakeAll();
  }

  /** Notices that somebody has cancelled the batch, or taken it over, and that its time is over. */
  async #look(): Promise<void> {
    const { batches } = this.#settings;
    const { tenant, id } = this.batch;
    let overAt: number | undefined;
    const { signal } = this.#over;
    while (!signal.aborted) {
      const found = await batches.read(tenant, id);
      if (found === undefined || found.batch.run !== this.batch.run) throw new LostRun("another run has begun");
      const isCancelled = found.batch.status === "cancelling";
      // What has changed since is taken by the change that meets it.
      if (isCancelled) this.#read = { ...this.#read, batch: { ...this.batch, status: "cancelling" } };
      const now = Date.now();
      if (isCancelled || now >= this.batch.expiresAt) overAt ??= now;
      if (isCancelled) this.#stop.abort();
      if (overAt !== undefined && now - overAt > GRACE_MS) for (const giveUp of this.#underWay) giveUp();
      this.#wakeAll();
      await delay(LOOK_EVERY_MS, signal);
    }
  }

  async #finish(ending: Ending): Promise<void> {
    if (this.batch.status === "in_progress") {
      await this.#change((one) => (one.status === "in_progress" ? withStatus(one, "finalizing", Date.now()) : one));
    }
    const files = await this.#kept.finish(this.batch);
    await this.#change((one) => ({ ...withStatus(one, ending, Date.now()), ...files }));
  }

  async #tell(): Promise<void> {
    const { id, tenant } = this.batch;
    const end = endedAs(this.batch);
    if (end !== undefined) await noteEnded(this.#settings.redis, tenant, id, `batch.${end}`, viewOf(this.batch));
  }

  /** Changes the record, whatever else of it somebody has changed meanwhile. */
  async #change(change: (batch: Batch) => Batch): Promise<void> {
    const { batches } = this.#settings;
    const { tenant, id, run } = this.batch;
    for (let i = 0; i < MOST_TRIES; i++) {
      const found = i === 0 ? this.#read : await batches.read(tenant, id);
      if (found === undefined || found.batch.run !== run) throw new LostRun("another run has begun");
      const changed = await batches.change(found, change(found.batch));
      if (changed !== undefined) {
        this.#read = changed;
        return;
      }
    }
    throw new Error("the batch is changed by others all the time");
  }

  async #untilDone(holds: () => boolean): Promise<void> {
    while (!holds() && this.#error === undefined) {
      if (this.#stop.signal.aborted && this.#underWay.size === 0) return;
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  /** The process stops: what is under way goes on in the fleet, and its answers are found later. */
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

/** @returns why the batch can never go on; undefined for what may pass */
function faultOf(error: unknown): Batch["faults"][number] | undefined {
  if (!(error instanceof InferenceError)) return storeFault(error);
  if (!endless.includes(error.code)) return undefined;
  return { code: error.code, message: error.message, line: null };
}

/** @returns undefined where the signal aborts first */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined);
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
