/**
 * The operations on a job: submit, look, fetch, cancel, run once more, list. Every gateway offers
 * them for every job, whichever gateway took it, since all that is known of one is in Redis.
 */
import { outcomeOf, readOutcome } from "#shared/contract/outcome.js";
import { errorKinds, fixedError, InferenceError } from "#shared/errors.js";
import { decodeRequestId, requestName, type RequestAddress } from "#shared/queue/address.js";
import { jobKey, jobsKey } from "#shared/queue/keys.js";
import { newestJobs, type JobFilters } from "#shared/queue/jobs/list.js";
import { readJob } from "#shared/queue/jobs/read.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import type { Bus } from "#shared/nats/connect.js";
import { askRedis } from "../admission/ask-redis.js";
import { endRequest } from "../admission/end-request.js";
import { jobAddress } from "../admission/request-id.js";
import { submitJob, type JobSettings } from "../admission/submit-job.js";
import { errorReply } from "../http/errors.js";
import type { Reply } from "../http/reply.js";
import type { TensorPrinter } from "../kserve/http/tensor-printer.js";
import { DeadRequests } from "./dead.js";
import type { JobType } from "./envelope.js";
import { waitOf, type JobOptions } from "./options.js";
import { indexId, listPage } from "./pages.js";
import type { Prepared, Shown } from "./prepare.js";
import { isKept, renderResult } from "./result.js";
import { encodeJobId, renderView, requestOf } from "./view.js";

export interface JobsSettings extends JobSettings {
  readonly bus: Bus;
  readonly printer: TensorPrinter;
  /** How long a result is kept where its job does not say, in ms. */
  readonly resultTtlMs: number;
}

/** A job as its client has sent it. */
export interface SentJob {
  readonly type: JobType;
  readonly options: JobOptions;
  readonly prepared: Prepared;
  /** All of the body. */
  readonly body: Buffer;
}

export interface ToldJob {
  readonly id: string;
  /** JSON. */
  readonly view: string;
}

/** Longer results are not told with the view, in bytes of JSON. */
const LONGEST_INLINE = 65_536;
/** No shorter JSON comes of a result of more bytes than this. */
const LONGEST_RAW = 8 * LONGEST_INLINE;

export class Jobs {
  /** Requests that were set aside, of jobs and of others. */
  readonly dead: DeadRequests;
  readonly #settings: JobsSettings;

  constructor(settings: JobsSettings) {
    this.#settings = settings;
    this.dead = new DeadRequests(settings.queue);
  }

  get ttls(): Pick<JobsSettings, "resultTtlMs" | "jobTtlMs"> {
    return this.#settings;
  }

  /**
   * Queues and records a job, in one step.
   * @returns `isReplayed`: it was there before, under the same key
   * @throws InferenceError
   */
  async submit({ type, options, prepared, body }: SentJob): Promise<ToldJob & { readonly isReplayed: boolean }> {
    const { run, shown, timeoutMs } = prepared;
    const address = jobAddress(run.request, this.#settings.queue);
    const record = { type, options: JSON.stringify(options), shown: JSON.stringify(shown), body };
    const part = { keptMs: options.result_ttl, record };
    const asked = JSON.stringify([type, options, shown, timeoutMs]);
    const said = await submitJob(this.#settings, run, address, { part, asked });
    return { ...(await this.#tellQueued(address)), isReplayed: said === "known" };
  }

  /** @throws InferenceError `unknown_job` or `unavailable` */
  view(tenant: string, id: string): Promise<ToldJob> {
    return this.#tell(addressOf(tenant, id));
  }

  /**
   * @returns what the path that answers at once would have answered
   * @throws InferenceError `unknown_job`, `job_not_ended`, `result_expired` or `unavailable`
   */
  async result(tenant: string, id: string): Promise<Reply> {
    const job = addressOf(tenant, id);
    const view = await this.#read(job);
    if (view.state === "queued" || view.state === "running") throw fixedError("job_not_ended", "usual");
    if (view.failure !== undefined) return failureReply(view);
    if (!isKept(view, Date.now())) throw fixedError("result_expired", "usual");
    const { queue, printer } = this.#settings;
    return askRedis(() => renderResult({ redis: queue.redis, printer }, view, requestOf(job, view)));
  }

  /**
   * Cancels a job, whatever it is at.
   * @returns as it stands then; `isOver` says that it had ended otherwise
   * @throws InferenceError `unknown_job` or `unavailable`
   */
  async cancel(tenant: string, id: string): Promise<ToldJob & { readonly isOver: boolean }> {
    const job = addressOf(tenant, id);
    let view = await this.#read(job);
    // Between two looks its request may have failed, and somebody has had it run once more.
    for (let ended = ""; view.endedAt === undefined && view.request !== ended; view = await this.#read(job)) {
      ended = view.request;
      await this.#end(job, view, "cancelled");
    }
    return { ...(await this.#render(job, view)), isOver: view.state !== "cancelled" };
  }

  /**
   * What is needed to run a job once more.
   * @throws InferenceError `unknown_job`, `job_not_retryable` or `unavailable`
   */
  async retryable(tenant: string, id: string): Promise<RetryableJob> {
    const job = addressOf(tenant, id);
    const view = await this.#read(job);
    if (view.state !== "failed" && view.state !== "expired") throw fixedError("job_not_retryable", "usual");
    const options = JSON.parse(view.options) as JobOptions;
    const waitMs = waitOf(options, Date.now());
    if (waitMs === undefined) throw fixedError("job_not_retryable", "deadline");
    const body = await askRedis(() => this.#settings.queue.redis.hgetBuffer(jobKey(job), "body"));
    if (body === null) throw fixedError("job_not_retryable", "body");
    return { job, view, options, waitMs, body };
  }

  /**
   * Queues a new request for a job, unless somebody else has done so meanwhile.
   * @throws InferenceError
   */
  async retry({ job, view, options }: RetryableJob, { run }: Prepared): Promise<ToldJob> {
    const again = { job: requestName(job), was: view.request };
    const part = { keptMs: options.result_ttl, record: undefined, again };
    // The bucket is that of the job; for a step it is that of its sequence anyway.
    const address = { ...job, request: `${job.request}-${view.made + 1}` };
    await submitJob(this.#settings, run, address, { part, asked: "" });
    return this.#tellQueued(job);
  }

  /**
   * @param after the id of the job behind which the page begins; undefined for the newest
   * @returns the views of the page, in JSON, without results; and behind which job the next begins
   * @throws InferenceError
   */
  async list(
    tenant: string,
    filters: JobFilters,
    most: number,
    after: string | undefined,
  ): Promise<{ readonly jobs: readonly ToldJob[]; readonly hasMore: boolean; readonly last: string | null }> {
    const { redis, buckets } = this.#settings.queue;
    const from = after === undefined ? newestJobs : await this.#placeOf(tenant, after);
    const { jobs, hasMore, last } = await askRedis(() => listPage(redis, buckets, tenant, from, most, filters));
    const told = jobs.map(({ job, view }) => ({ id: encodeJobId(job), view: renderView(job, view, undefined) }));
    return { jobs: told, hasMore, last: last === undefined ? null : encodeJobId(last) };
  }

  async #placeOf(tenant: string, after: string) {
    const job = decodeJobId(tenant, after);
    const { redis } = this.#settings.queue;
    // The index has its place for a while after the job is gone, so that lists go on.
    const at = job && (await askRedis(() => redis.zscore(jobsKey(job.bucket, tenant), indexId(job))));
    if (job === undefined || at === undefined || at === null) {
      throw new InferenceError("invalid_argument", "after must be the id of a job that is still known");
    }
    return { at: Number(at), id: indexId(job) };
  }

  /**
   * Tells of a job that was queued just now. Where that cannot be read, no client may believe that
   * nothing was queued: it would send the job again, and have two.
   * @throws InferenceError `outcome_unknown`
   */
  async #tellQueued(job: RequestAddress): Promise<ToldJob> {
    try {
      return await this.#tell(job);
    } catch (cause) {
      if (!(cause instanceof InferenceError)) throw cause;
      throw fixedError("outcome_unknown", "admission", { cause });
    }
  }

  async #tell(job: RequestAddress): Promise<ToldJob> {
    return this.#render(job, await this.#read(job));
  }

  /**
   * Reads how a job stands. One that has waited for too long is ended: the gateway that was to do
   * so may be gone.
   */
  async #read(job: RequestAddress): Promise<JobView> {
    const view = await this.#look(job);
    if (view === undefined) throw fixedError("unknown_job", "usual");
    if (view.state !== "queued" || view.leftMs > 0) return view;
    await this.#end(job, view, "expired");
    return (await this.#look(job)) ?? view;
  }

  #look(job: RequestAddress): Promise<JobView | undefined> {
    const { redis, buckets } = this.#settings.queue;
    return askRedis(() => readJob(redis, job, buckets));
  }

  async #end(job: RequestAddress, view: JobView, code: "cancelled" | "expired"): Promise<void> {
    const { queue, bus, jobTtlMs: ttlMs } = this.#settings;
    const message = code === "cancelled" ? errorKinds.cancelled.texts.byClient : errorKinds.expired.texts.beforeResult;
    const stream = (JSON.parse(view.shown) as Shown).as !== "tensors";
    const ending = { code, message, ttlMs, stream, unlessBegun: code === "expired" };
    await askRedis(() => endRequest({ redis: queue.redis, bus }, requestOf(job, view), ending));
  }

  async #render(job: RequestAddress, view: JobView): Promise<ToldJob> {
    return { id: encodeJobId(job), view: renderView(job, view, await this.#inline(job, view)) };
  }

  /** The result as JSON where it is short. */
  async #inline(job: RequestAddress, view: JobView): Promise<string | undefined> {
    if (view.state !== "completed" || !isKept(view, Date.now()) || view.resultBytes > LONGEST_RAW) return undefined;
    if (view.records > LONGEST_INLINE) return undefined;
    const { queue, printer } = this.#settings;
    const rendering = () => renderResult({ redis: queue.redis, printer }, view, requestOf(job, view));
    try {
      const { headers, body } = await askRedis(rendering);
      const text = body.join("");
      const isJson = headers["content-type"] === "application/json";
      return isJson && Buffer.byteLength(text) <= LONGEST_INLINE ? text : undefined;
    } catch (error) {
      // It may have expired meanwhile, or be no JSON.
      if (error instanceof InferenceError && error.code !== "unavailable") return undefined;
      throw error;
    }
  }
}

export interface RetryableJob {
  /** The address of its first request. */
  readonly job: RequestAddress;
  readonly view: JobView;
  readonly options: JobOptions;
  readonly waitMs: number;
  /** As its client has sent it. */
  readonly body: Buffer;
}

function failureReply({ failure, type }: JobView): Reply {
  const outcome = failure === undefined ? outcomeOf(undefined) : readOutcome("error", failure);
  if (outcome.kind !== "error") throw new TypeError("a failure is stored as an error");
  const shape = type === "chat" || type === "completion" ? "openai" : "kserve";
  return errorReply(new InferenceError(outcome.code, outcome.message), shape);
}

function addressOf(tenant: string, id: string): RequestAddress {
  const job = decodeJobId(tenant, id);
  if (job === undefined) throw fixedError("unknown_job", "usual");
  return job;
}

/** @returns undefined for an id that no gateway made */
function decodeJobId(tenant: string, id: string): RequestAddress | undefined {
  return id.startsWith("job_") ? decodeRequestId(id.slice("job_".length), tenant) : undefined;
}
