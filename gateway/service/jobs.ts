/**
 * The operations on the jobs of a tenant. Every gateway offers all operations for every job,
 * because the whole state of a job is in Redis.
 */
import { fixedError, InferenceError } from "#shared/errors.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { newestJobs, type JobFilters } from "#shared/queue/jobs/list.js";
import type { JobState } from "#shared/queue/jobs/view.js";
import { jobsKey } from "#shared/queue/keys.js";
import { stageText } from "#shared/queue/pieces/job.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { RequestBudget } from "../admission/budget.js";
import { askRedis } from "../admission/ask-redis.js";
import type { RequestTrace } from "../trace/request-trace.js";
import type { ModelName } from "../fleet/models.js";
import type { Jobs } from "../jobs/jobs.js";
import { waitOf, type JobOptions } from "../jobs/options.js";
import { indexId, listPage } from "../jobs/pages.js";
import { failureOf, isKept, readResult, type JobEnd } from "../jobs/result.js";
import type { SentJob } from "../jobs/submissions.js";
import { decodeJobId, encodeJobId, renderView, requestOf, stageOf, type ToldJob } from "../jobs/view.js";
import type { Caller } from "./caller.js";
import type { Page, PageTerms } from "./page.js";

export interface JobServiceSettings {
  readonly jobs: Jobs;
  readonly redis: RedisClient;
  readonly buckets: number;
}

/** The body of a new job, on its way from the client. */
export interface JobBody {
  /**
   * Receives the body, and reads it.
   * @throws InferenceError
   */
  receive(read: (bytes: Buffer) => Promise<SentJob>): Promise<SentJob>;
  /** @throws InferenceError `cancelled` if the client has gone */
  stillWanted(): void;
}

export interface SubmitTerms {
  /** Under which the client may send the job again. */
  readonly key?: string | undefined;
  readonly budget?: RequestBudget | undefined;
  /** Undefined if the submission is not sampled. */
  readonly trace?: RequestTrace | undefined;
}

export class JobService {
  readonly #settings: JobServiceSettings;

  constructor(settings: JobServiceSettings) {
    this.#settings = settings;
  }

  /**
   * Records a job, and queues the job or lets the job wait for its time. Looks for the model before
   * the body comes, so that a client of an unknown model need not send the body.
   * @returns `isReplayed`: the job exists already, under the same key
   * @throws InferenceError
   */
  async submit(
    caller: Caller,
    model: ModelName,
    body: JobBody,
    { key, budget, trace }: SubmitTerms = {},
  ): Promise<ToldJob & { readonly isReplayed: boolean }> {
    const { submissions } = this.#settings.jobs;
    const place = { ...model, tenant: caller.tenant, mayUse: caller.mayUse, budget };
    const target = submissions.target(place, key, () => body.stillWanted());
    const sent = await body.receive((bytes) => submissions.read(target, bytes));
    return submissions.submit({ ...sent, submission: trace?.server });
  }

  /**
   * Lists the jobs, the newest first. If few jobs match the filters, the page ends early, so that
   * no page costs Redis long.
   * @returns the views of the page, without results; and the job behind which the next page begins
   * @throws InferenceError
   */
  async list(
    { tenant }: Caller,
    { limit, after }: PageTerms,
    filters: JobFilters,
  ): Promise<Page<ToldJob> & { readonly last: string | undefined }> {
    const { redis, buckets } = this.#settings;
    const from = after === undefined ? newestJobs : await this.#placeOf(tenant, after);
    const { jobs, hasMore, last } = await askRedis(() => listPage(redis, buckets, tenant, from, limit, filters));
    const data = jobs.map(({ job, view }) => ({ id: encodeJobId(job), view: renderView(job, view, {}) }));
    return { data, hasMore, last: last && encodeJobId(last) };
  }

  /** @throws InferenceError `unknown_job` or `unavailable` */
  async view({ tenant }: Caller, id: string): Promise<ToldJob> {
    return this.#settings.jobs.tell(addressOf(tenant, id));
  }

  /**
   * @returns the result, with the form in which the client asked for the result; or the failure
   * @throws InferenceError `unknown_job`, `job_not_ended`, `result_expired` or `unavailable`
   */
  async result({ tenant }: Caller, id: string): Promise<JobEnd> {
    const { jobs, redis } = this.#settings;
    const job = addressOf(tenant, id);
    const view = await jobs.read(job);
    if (view.endedAt === undefined) throw fixedError("job_not_ended", "usual");
    if (view.failure !== undefined) return failureOf(view, view.failure);
    if (!isKept(view)) throw fixedError("result_expired", "usual");
    return askRedis(() => readResult(redis, view, requestOf(job, view)));
  }

  /**
   * Cancels a job in any state.
   * @returns the job after that; its state says whether the job had ended otherwise
   * @throws InferenceError `unknown_job` or `unavailable`
   */
  async cancel({ tenant }: Caller, id: string): Promise<ToldJob & { readonly state: JobState }> {
    const { jobs } = this.#settings;
    const job = addressOf(tenant, id);
    let view = await jobs.read(job);
    // Between two looks, the job's request may have failed, so that the job runs once more.
    for (let ended = ""; view.endedAt === undefined && stageText(stageOf(view)) !== ended;) {
      ended = stageText(stageOf(view));
      await jobs.end(job, view, "cancelled");
      view = await jobs.read(job);
    }
    return { ...(await jobs.render(job, view)), state: view.state };
  }

  /**
   * Queues a new request for a job that has failed or expired, unless another call has done so
   * meanwhile.
   * @throws InferenceError
   */
  async retry({ tenant, mayUse, budget }: Caller, id: string): Promise<ToldJob> {
    const { jobs } = this.#settings;
    const job = addressOf(tenant, id);
    const view = await jobs.read(job);
    if (view.state !== "failed" && view.state !== "expired") throw fixedError("job_not_retryable", "usual");
    const waitMs = waitOf(JSON.parse(view.options) as JobOptions, view.seenAt);
    if (waitMs === undefined) throw fixedError("job_not_retryable", "deadline");
    // Rates count submissions, and this job was submitted before.
    await jobs.runAgain(job, view, waitMs, { mayUse, budget: budget && new RequestBudget(budget).forPart() });
    return jobs.tellQueued(job);
  }

  async #placeOf(tenant: string, after: string) {
    const job = decodeJobId(tenant, after);
    const { redis } = this.#settings;
    // The index keeps a job's place for a while after the job is gone, so that lists can continue.
    const at = job && (await askRedis(() => redis.zscore(jobsKey(job.bucket, tenant), indexId(job))));
    if (job === undefined || at === undefined || at === null) {
      throw new InferenceError("invalid_argument", "after must be the id of a job that is still known");
    }
    return { at: Number(at), id: indexId(job) };
  }
}

function addressOf(tenant: string, id: string): RequestAddress {
  const job = decodeJobId(tenant, id);
  if (job === undefined) throw fixedError("unknown_job", "usual");
  return job;
}
