/**
 * One run of a batch by one process: from the checkpoint in the record to the end of the batch, or
 * until the process stops. Only the newest run can change the record, and each change says up to
 * which line the store has all answers. So a run may end anywhere: the next run continues at that
 * line, and no run writes a line twice. If the store has no answer of a line, the next run sends
 * the line again under the same key, and so finds the outcome instead of running the line again.
 */
import type { Logger } from "pino";
import { forgetDuplicates, writeDuplicates } from "#shared/queue/batches/batches.js";
import { noteEnded } from "#shared/queue/batches/note-ended.js";
import { InferenceError, type ErrorCode } from "#shared/errors.js";
import { endedAs, endingOf, hasEnded, viewOf, withStatus, type Batch, type Ending } from "../../../batches/batch.js";
import type { Batches } from "../../../batches/batches.js";
import { storeFault } from "./batch-files.js";
import { Kept } from "./kept.js";
import type { LineInference } from "./line-inference.js";
import { LineResults } from "./line-results.js";
import { LinesRun, type LineSettings } from "./lines-run.js";
import { LostRun, RunRecord } from "./run-record.js";
import type { Shares } from "./shares.js";
import { validate } from "./validate.js";

export interface RunSettings extends LineSettings {
  readonly batches: Batches;
  readonly inference: LineInference;
  /** Limits the files that the process validates at a time. */
  readonly validations: Shares;
  readonly log: Logger;
}

/** Errors that do not pass with time: only the tenant can remove their cause. */
const endless: readonly ErrorCode[] = ["payload_too_large", "file_limit", "storage_full", "unknown_file"];

export class BatchRun {
  readonly #settings: RunSettings;
  readonly #record: RunRecord;
  readonly #kept: Kept;

  private constructor(settings: RunSettings, record: RunRecord) {
    this.#settings = settings;
    this.#record = record;
    this.#kept = new Kept(settings.files, record.batch);
  }

  /**
   * Begins a run, which ends any other run of the batch.
   * @returns undefined if the batch needs no run
   */
  static async begin(settings: RunSettings, tenant: string, id: string): Promise<BatchRun | undefined> {
    const record = await RunRecord.begin(settings.batches, tenant, id);
    return record && new BatchRun(settings, record);
  }

  get #batch(): Batch {
    return this.#record.batch;
  }

  /**
   * Runs the batch to its end, or until `signal` aborts.
   * @throws LostRun
   */
  async run(signal: AbortSignal): Promise<void> {
    try {
      if (!hasEnded(this.#batch)) await this.#settings.files.use(this.#batch, this.#record.now);
      if (this.#batch.status === "validating") await this.#validate(signal);
      if (signal.aborted) return;
      if (this.#batch.status === "in_progress" || this.#batch.status === "cancelling") await this.#runLines(signal);
      if (signal.aborted) return;
      if (!hasEnded(this.#batch)) await this.#finish(endingOf(this.#batch, this.#record.now));
    } catch (error) {
      if (error instanceof LostRun) await this.#forgetOwn();
      const fault = faultOf(error);
      if (fault === undefined) throw error;
      const files = await this.#kept.finishFailed(this.#batch, (one) => faultOf(one) !== undefined);
      await this.#record.change((one) => ({
        ...withStatus(one, "failed", this.#record.now),
        ...files,
        faults: [fault],
      }));
    }
    await this.#clearUp();
  }

  /** Validates the file. Changes nothing if `signal` aborts before the end. */
  async #validate(signal: AbortSignal): Promise<void> {
    const { redis, files, validations } = this.#settings;
    const { tenant, expiresAt } = this.#batch;
    if (!(await validations.take(tenant, signal))) return;
    try {
      const file = await files.read(this.#batch, 0);
      const said =
        file === undefined
          ? { fault: { code: "file_not_found", message: "the input file is gone", line: null } }
          : await validate(file, signal);
      if (said === undefined) return;
      if ("fault" in said) {
        await this.#record.change((one) => ({ ...withStatus(one, "failed", this.#record.now), faults: [said.fault] }));
        return;
      }
      const { total, duplicates } = said;
      if (duplicates !== undefined) {
        const ttlMs = Math.max(expiresAt - this.#record.now, 0) + 86_400_000;
        await writeDuplicates(redis, this.#batch, duplicates, ttlMs);
      }
      await this.#record.change((one) =>
        one.status === "validating"
          ? // Earlier runs had no lines yet, so they have left no files.
            { ...withStatus(one, "in_progress", this.#record.now), total, swept: one.run - 1 }
          : { ...one, total },
      );
    } finally {
      validations.release(tenant);
    }
  }

  async #runLines(signal: AbortSignal): Promise<void> {
    const last = this.#batch.run - 1;
    await this.#forgetUnnoted(last);
    if (last > (this.#batch.swept ?? 0)) await this.#record.change((one) => ({ ...one, swept: last }));
    const results = new LineResults(this.#record, this.#kept, this.#settings.inference);
    try {
      await new LinesRun(this.#settings, this.#record, results).run(signal);
    } finally {
      results.leave();
    }
  }

  async #finish(ending: Ending): Promise<void> {
    if (this.#batch.status === "in_progress") {
      await this.#record.change((one) =>
        one.status === "in_progress" ? withStatus(one, "finalizing", this.#record.now) : one,
      );
    }
    const files = await this.#kept.finish(this.#batch);
    await this.#record.change((one) => ({ ...withStatus(one, ending, this.#record.now), ...files }));
  }

  /**
   * Notes the event of the batch's end, removes all data that no run needs any more, and closes the
   * batch.
   */
  async #clearUp(): Promise<void> {
    const { redis, files } = this.#settings;
    const { id, tenant, run } = this.#batch;
    const end = endedAs(this.#batch);
    if (end !== undefined) await noteEnded(redis, tenant, id, `batch.${end}`, viewOf(this.#batch));
    await this.#kept.forget(this.#batch);
    await this.#forgetUnnoted(run);
    await files.release(this.#batch);
    await forgetDuplicates(redis, this.#batch);
    await this.#record.close();
  }

  /** Forgets the pieces of the runs up to `last` that do not count. */
  async #forgetUnnoted(last: number): Promise<void> {
    const { swept = 0 } = this.#batch;
    for (let run = swept + 1; run <= last; run++) await this.#kept.forgetUnnoted(this.#batch, run);
  }

  /**
   * Forgets the pieces that this run has written after a newer run began, because that run does not
   * know these pieces.
   */
  async #forgetOwn(): Promise<void> {
    const { batches, log } = this.#settings;
    const { tenant, id, run } = this.#batch;
    try {
      const found = await batches.read(tenant, id);
      if (found !== undefined) await this.#kept.forgetUnnoted(found.batch, run);
    } catch (error) {
      log.debug({ batch: id, error: String(error) }, "what a lost run has written is left to the next one");
    }
  }
}

/** @returns the fault if the batch can never continue; undefined if the error may pass */
function faultOf(error: unknown): Batch["faults"][number] | undefined {
  if (!(error instanceof InferenceError)) return storeFault(error);
  if (!endless.includes(error.code)) return undefined;
  return { code: error.code, message: error.message, line: null };
}
