/** The operations on the batches of a tenant. */
import { createHash, createHmac, randomBytes } from "node:crypto";
import { fixedError, InferenceError } from "#shared/errors.js";
import { writeTraceparent } from "#shared/trace/context.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import type { RequestBudget } from "../admission/budget.js";
import { cancelled, newBatch, usedForMs, viewOf, type Batch } from "../batches/batch.js";
import type { Batches } from "../batches/batches.js";
import type { Files } from "../files/files.js";
import { ParameterError } from "../generation/parameters.js";
import type { RequestTrace } from "../trace/request-trace.js";
import type { Caller } from "./caller.js";
import { unknownPlace, type Page, type PageTerms } from "./page.js";

export interface BatchServiceSettings {
  readonly batches: Batches;
  readonly files: Files;
  /**
   * The deployment's secret. If the client sends an Idempotency-Key, the batch's id is an HMAC of
   * the key under this secret.
   */
  readonly secret: () => Buffer;
}

/** The batch that a client asks for. */
export interface BatchOrder extends Pick<Batch, "endpoint" | "inputFile" | "window" | "metadata"> {
  readonly windowMs: number;
}

export type BatchView = ReturnType<typeof viewOf>;

const ID_BYTES = 18;
/** Most tries of a cancel, if other changes of the batch come first. */
const MOST_TRIES = 10;
/** After these refusals there is no batch, or only a batch of another order under the same key. */
const notMade: readonly string[] = ["batch_limit", "rate_limit_exceeded", "unavailable", "idempotency_mismatch"];

export class BatchService {
  readonly #settings: BatchServiceSettings;

  constructor(settings: BatchServiceSettings) {
    this.#settings = settings;
  }

  /**
   * Lists the batches, the newest first.
   * @throws InferenceError
   */
  async list({ tenant }: Caller, { limit, after }: PageTerms): Promise<Page<BatchView>> {
    const found = await askRedis(() => this.#settings.batches.list(tenant, after, limit + 1));
    if (found === undefined) throw unknownPlace();
    return { data: found.slice(0, limit).map(viewOf), hasMore: found.length > limit };
  }

  /**
   * @param key the client's Idempotency-Key
   * @param budget undefined if the caller has no limits
   * @param trace undefined if the submission is not sampled
   * @returns the batch, and whether an earlier call has made it
   * @throws InferenceError `invalid_argument` if the input is no file for batches, `batch_limit`,
   * `rate_limit_exceeded`, `idempotency_mismatch`, `outcome_unknown` or `unavailable`
   */
  async make(
    { tenant, models }: Caller,
    order: BatchOrder,
    key: string | undefined,
    budget?: RequestBudget,
    trace?: RequestTrace,
  ): Promise<{ readonly batch: BatchView; readonly isReplayed: boolean }> {
    const { batches } = this.#settings;
    const { windowMs, ...given } = order;
    const id = this.#idOf(tenant, key);
    // A batch from an earlier call may have outlived its file.
    const isThere = key !== undefined && (await askRedis(() => batches.read(tenant, id))) !== undefined;
    const now = await askRedis(() => batches.now());
    const ofSubmission = trace && { trace: writeTraceparent(trace.server) };
    const batch = newBatch({ ...given, id, tenant, models, digest: digestOf(order), ...ofSubmission }, now, windowMs);
    if (!isThere) await this.#useInput(batch, now);
    try {
      const { batch: made, isReplayed } = await batches.make(batch, budget);
      return { batch: viewOf(made), isReplayed };
    } catch (error) {
      // If the batch may exist after all, the process that runs it releases the file.
      if (error instanceof InferenceError && notMade.includes(error.code)) await this.#releaseInput(batch);
      throw error;
    }
  }

  /** @throws InferenceError `unknown_batch` or `unavailable` */
  async find({ tenant }: Caller, id: string): Promise<BatchView> {
    const found = await askRedis(() => this.#settings.batches.read(tenant, id));
    if (found === undefined) throw fixedError("unknown_batch", "usual");
    return viewOf(found.batch);
  }

  /**
   * @returns the batch as it is now
   * @throws InferenceError `unknown_batch`, `already_ended`, `outcome_unknown` or `unavailable`
   */
  async cancel(caller: Caller, id: string): Promise<BatchView> {
    await this.find(caller, id);
    return viewOf(await changeInRedis(() => this.#cancel(caller, id)));
  }

  async #cancel({ tenant }: Caller, id: string): Promise<Batch> {
    const { batches } = this.#settings;
    const now = await batches.now();
    for (let i = 0; i < MOST_TRIES; i++) {
      const found = await batches.read(tenant, id);
      if (found === undefined) throw fixedError("unknown_batch", "usual");
      const to = cancelled(found.batch, now);
      if (to === undefined) throw new InferenceError("already_ended", `the batch is ${found.batch.status}`);
      if (to === found.batch || (await batches.change(found, to)) !== undefined) return to;
    }
    throw fixedError("outcome_unknown", "change");
  }

  async #useInput(batch: Batch, now: number): Promise<void> {
    const { files } = this.#settings;
    const { id, tenant, inputFile } = batch;
    const input = { tenant, id: inputFile };
    checkPurpose(inputFile, await files.find(input));
    if (!(await files.use(input, id, usedForMs(batch, now)))) checkPurpose(inputFile, undefined);
  }

  async #releaseInput({ id, tenant, inputFile }: Batch): Promise<void> {
    const { batches, files } = this.#settings;
    // Another gateway may have made a batch under the same key.
    const there = await askRedis(() => batches.read(tenant, id));
    if (there?.batch.inputFile !== inputFile) await files.release({ tenant, id: inputFile }, id);
  }

  #idOf(tenant: string, key: string | undefined): string {
    if (key === undefined) return idFrom(randomBytes(ID_BYTES));
    const made = createHmac("sha256", this.#settings.secret()).update(JSON.stringify(["batch", tenant, key]));
    return idFrom(made.digest().subarray(0, ID_BYTES));
  }
}

function idFrom(bytes: Buffer): string {
  return `batch_${bytes.toString("base64url")}`;
}

/** The order of the members may not change, because stored batches have such digests. */
function digestOf({ endpoint, inputFile, window, windowMs, metadata }: BatchOrder): string {
  const text = JSON.stringify({ endpoint, inputFile, window, windowMs, metadata });
  return createHash("sha256").update(text).digest("base64url");
}

/** @throws ParameterError if the file cannot be the input of a batch */
function checkPurpose(id: string, found: { readonly purpose: string } | undefined): void {
  if (found === undefined) throw new ParameterError("input_file_id", `there is no file '${id}'`);
  if (found.purpose === "batch") return;
  throw new ParameterError("input_file_id", `the purpose of file '${id}' must be batch, not ${found.purpose}`);
}
