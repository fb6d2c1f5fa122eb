/**
 * The operations on a recorded job: view, result, cancel, retry, list. Every gateway offers all
 * operations for every job, because the whole state of a job is in Redis.
 */
import { outcomeOf, readOutcome } from "#shared/contract/outcome.js";
import { errorKinds, fixedError, InferenceError } from "#shared/errors.js";
import { decodeRequestId, parseRequestName, requestName, type RequestAddress } from "#shared/queue/address.js";
import type { NotedJob } from "#shared/queue/pieces/job-events.js";
import { jobKey, jobsKey, logKey, outcomeKey } from "#shared/queue/keys.js";
import { parseLabels, stageText } from "#shared/queue/pieces/job.js";
import { endLater } from "#shared/queue/jobs/end-later.js";
import { putOff } from "#shared/queue/jobs/put-off.js";
import { newestJobs, type JobFilters } from "#shared/queue/jobs/list.js";
import { readJob } from "#shared/queue/jobs/read.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import type { Bus } from "#shared/nats/connect.js";
import { askRedis } from "../admission/ask-redis.js";
import { endRequest } from "../admission/end-request.js";
import { submitJob } from "../admission/submit-job.js";
import { errorReply } from "../http/errors.js";
import type { Reply } from "../http/reply.js";
import type { TensorPrinter } from "../kserve/http/tensor-printer.js";
import { DeadRequests } from "./dead.js";
import { readEnvelope } from "./envelope.js";
import { waitOf, type JobOptions } from "./options.js";
import { indexId, listPage } from "./pages.js";
import { prepare, type Shown } from "./prepare.js";
import { mayFitLater } from "./repeats.js";
import { isKept, renderResult } from "./result.js";
import { Submissions, type JobLooks, type JobPlace, type SubmissionSettings } from "./submissions.js";
import { encodeJobId, renderView, requestOf, stageOf, viewOfNoted, type ToldJob } from "./view.js";

export interface JobsSettings extends SubmissionSettings {
  readonly bus: Bus;
  readonly printer: TensorPrinter;
}

/** The view omits longer results, in bytes of JSON. */
const LONGEST_INLINE = 65_536;
/** The same limit for the view in an event. */
const LONGEST_IN_EVENT = 16_384;
/** A result in JSON has at least one byte for so many bytes of the stored result. */
const RAW_FACTOR = 8;

export class Jobs implements JobLooks {
  readonly submissions: Submissions;
  /** Requests that workers have set aside, with or without a job. */
  readonly dead: DeadRequests;
  readonly #settings: JobsSettings;

  constructor(settings: JobsSettings) {
    this.#settings = settings;
    this.submissions = new Submissions(settings, this);
    this.dead = new DeadRequests(settings.queue);
  }

  /**
   * The view of a job at an event, for webhooks.
   * @returns the job's id, and the view as JSON; without the result if the result is long or gone
   */
  async toldOf(job: RequestAddress, noted: NotedJob): Promise<ToldJob> {
    const { redis } = this.#settings.queue;
    const request = { ...job, ...parseRequestName(noted.request) };
    const [shown, resultBytes, records] = await Promise.all([
      redis.hget(jobKey(job), "shown"),
      redis.hstrlen(outcomeKey(request), "body"),
      redis.llen(logKey(request)),
    ]);
    // Tokens that the job has generated since it began are not part of its state then.
    const then = noted.state === "running" ? 0 : records;
    const view = viewOfNoted(noted, { shown: shown ?? undefined, resultBytes, records: then });
    const result = shown === null ? undefined : await this.#inline(job, view, LONGEST_IN_EVENT);
    return { id: encodeJobId(job), view: renderView(job, view, { result }) };
  }

  /** @throws InferenceError `unknown_job` or `unavailable` */
  view(tenant: string, id: string): Promise<ToldJob> {
    return this.tell(addressOf(tenant, id));
  }

  /**
   * @returns the answer of the path that answers at once
   * @throws InferenceError `unknown_job`, `job_not_ended`, `result_expired` or `unavailable`
   */
  async result(tenant: string, id: string): Promise<Reply> {
    const job = addressOf(tenant, id);
    const view = await this.#read(job);
    if (view.endedAt === undefined) throw fixedError("job_not_ended", "usual");
    if (view.failure !== undefined) return failureReply(view);
    if (!isKept(view)) throw fixedError("result_expired", "usual");
    const { queue, printer } = this.#settings;
    return askRedis(() => renderResult({ redis: queue.redis, printer }, view, requestOf(job, view)));
  }

  /**
   * Cancels a job in any state.
   * @returns the job after that; `isOver` says that the job had ended otherwise
   * @throws InferenceError `unknown_job` or `unavailable`
   */
  async cancel(tenant: string, id: string): Promise<ToldJob & { readonly isOver: boolean }> {
    const job = addressOf(tenant, id);
    let view = await this.#read(job);
    // Between two looks, the job's request may have failed, so that the job runs once more.
    for (let ended = ""; view.endedAt === undefined && stageText(stageOf(view)) !== ended;) {
      ended = stageText(stageOf(view));
      await this.#end(job, view, "cancelled");
      view = await this.#read(job);
    }
    return { ...(await this.#render(job, view)), isOver: view.state !== "cancelled" };
  }

  /**
   * Queues a new request for a job that has failed or expired, unless another call has done so
   * meanwhile.
   * @throws InferenceError
   */
  async retry(tenant: string, id: string): Promise<ToldJob> {
    const job = addressOf(tenant, id);
    const view = await this.#read(job);
    if (view.state !== "failed" && view.state !== "expired") throw fixedError("job_not_retryable", "usual");
    const waitMs = waitOf(JSON.parse(view.options) as JobOptions, view.seenAt);
    if (waitMs === undefined) throw fixedError("job_not_retryable", "deadline");
    await this.runAgain(job, view, waitMs);
    return this.tellQueued(job);
  }

  /**
   * Queues a new request for a job that waits, or has ended, unless the job has changed since this
   * view.
   * @throws InferenceError `job_not_retryable` if the job has changed, or its body is gone
   */
  async runAgain(job: RequestAddress, view: JobView, waitMs: number): Promise<void> {
    const { queue, jobTtlMs } = this.#settings;
    const options = JSON.parse(view.options) as JobOptions;
    const [body, labels] = await askRedis(() => queue.redis.hmgetBuffer(jobKey(job), "body", "labels"));
    if (!body) throw fixedError("job_not_retryable", "body");
    const target = this.submissions.target({
      tenant: job.tenant,
      model: job.model,
      version: options.version ?? undefined,
    });
    const { run } = await prepare(target, readEnvelope(body), options, waitMs);
    const again = { job: requestName(job), ...stageOf(view) };
    const part = { keptMs: options.result_ttl, record: undefined, again };
    // The new request has the job's bucket, which for a step is the bucket of its sequence anyway.
    const address = view.made === 0 ? job : { ...job, request: `${job.request}-${view.made + 1}` };
    // Keeps the job at least as long as Redis keeps idempotency keys.
    const settings = { ...this.#settings, jobTtlMs: Math.max(jobTtlMs, queue.idempotencyTtlMs) };
    await submitJob(settings, run, address, { part, asked: "", labels: parseLabels(labels?.toString()) });
  }

  /**
   * @param after the id of the job behind which the page begins; undefined for the newest
   * @returns the views of the page, in JSON, without results; and the job behind which the next
   * begins
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
    const told = jobs.map(({ job, view }) => ({ id: encodeJobId(job), view: renderView(job, view, {}) }));
    return { jobs: told, hasMore, last: last === undefined ? null : encodeJobId(last) };
  }

  async #placeOf(tenant: string, after: string) {
    const job = decodeJobId(tenant, after);
    const { redis } = this.#settings.queue;
    // The index keeps a job's place for a while after the job is gone, so that lists can continue.
    const at = job && (await askRedis(() => redis.zscore(jobsKey(job.bucket, tenant), indexId(job))));
    if (job === undefined || at === undefined || at === null) {
      throw new InferenceError("invalid_argument", "after must be the id of a job that is still known");
    }
    return { at: Number(at), id: indexId(job) };
  }

  /**
   * Renders a job that the gateway has just queued. If the read fails, the error must not say that
   * the job was not queued: the client would send the job again, and have two jobs.
   * @throws InferenceError `outcome_unknown`
   */
  async tellQueued(job: RequestAddress, secret?: string): Promise<ToldJob> {
    try {
      return await this.#render(job, await this.#read(job), secret);
    } catch (cause) {
      if (!(cause instanceof InferenceError)) throw cause;
      throw fixedError("outcome_unknown", "admission", { cause });
    }
  }

  async tell(job: RequestAddress): Promise<ToldJob> {
    return this.#render(job, await this.#read(job));
  }

  /**
   * Reads a job. Ends a job that has waited for too long, because the gateway that should do so may
   * be dead.
   */
  async #read(job: RequestAddress): Promise<JobView> {
    const view = await this.look(job);
    if (view === undefined) throw fixedError("unknown_job", "usual");
    if (!["queued", "scheduled"].includes(view.state) || view.leftMs > 0) return view;
    await this.#end(job, view, "expired");
    return (await this.look(job)) ?? view;
  }

  /** @returns undefined if there is no such job */
  look(job: RequestAddress): Promise<JobView | undefined> {
    const { redis, buckets } = this.#settings.queue;
    return askRedis(() => readJob(redis, job, buckets));
  }

  async #end(job: RequestAddress, view: JobView, code: "cancelled" | "expired"): Promise<void> {
    const { queue, bus, jobTtlMs: ttlMs } = this.#settings;
    const message = code === "cancelled" ? errorKinds.cancelled.texts.byClient : errorKinds.expired.texts.beforeResult;
    if (view.state === "scheduled") return this.endWaiting(job, view, { code, message });
    const stream = (JSON.parse(view.shown) as Shown).as !== "tensors";
    const ending = { code, message, ttlMs, stream, unlessBegun: code === "expired" };
    await askRedis(() => endRequest({ redis: queue.redis, bus }, requestOf(job, view), ending));
  }

  /** Ends a job that waits for its time, unless the job has changed since this view. */
  async endWaiting(job: RequestAddress, view: JobView, error: Pick<InferenceError, "code" | "message">): Promise<void> {
    const { queue, jobTtlMs } = this.#settings;
    const ttlMs = Math.max(jobTtlMs, queue.idempotencyTtlMs);
    await askRedis(() => endLater(queue.redis, job, stageOf(view), error, ttlMs));
  }

  /**
   * Puts off a job that is due, unless the job has changed since this view.
   * @returns after how many ms it is due again; undefined if the job has changed
   */
  putOff(job: RequestAddress, view: JobView): Promise<number | undefined> {
    return askRedis(() => putOff(this.#settings.queue.redis, job, stageOf(view), view.leftMs));
  }

  /**
   * Whether workers may accept later, unchanged, a job that was refused with this error.
   * @param isLate whether refusals have lasted for some time
   */
  mayFitLater({ code }: InferenceError, { model }: Pick<JobPlace, "model">, isLate: boolean): boolean {
    return mayFitLater(code, model, this.#settings.fleet.directory.all(), isLate);
  }

  async #render(job: RequestAddress, view: JobView, secret?: string): Promise<ToldJob> {
    const result = await this.#inline(job, view, LONGEST_INLINE);
    return { id: encodeJobId(job), view: renderView(job, view, { result, secret, showsWebhook: true }) };
  }

  /** The result as JSON, if the JSON has at most `most` bytes. */
  async #inline(job: RequestAddress, view: JobView, most: number): Promise<string | undefined> {
    if (view.state !== "completed" || !isKept(view)) return undefined;
    if (view.resultBytes > RAW_FACTOR * most || view.records > most) return undefined;
    const { queue, printer } = this.#settings;
    const rendering = () => renderResult({ redis: queue.redis, printer }, view, requestOf(job, view));
    try {
      const { headers, body } = await askRedis(rendering);
      const text = body.join("");
      const isJson = headers["content-type"] === "application/json";
      return isJson && Buffer.byteLength(text) <= most ? text : undefined;
    } catch (error) {
      // The result may have expired meanwhile, or may have no JSON form.
      if (error instanceof InferenceError && error.code !== "unavailable") return undefined;
      throw error;
    }
  }
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
