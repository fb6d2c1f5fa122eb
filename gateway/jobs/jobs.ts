/**
 * Recorded jobs, as the operations of clients and the jobs process use them. Every process can read
 * and change every job, because the whole state of a job is in Redis.
 */
import { errorKinds, fixedError, InferenceError } from "#shared/errors.js";
import { parseRequestName, requestName, type RequestAddress } from "#shared/queue/address.js";
import type { NotedJob } from "#shared/queue/pieces/job-events.js";
import { jobKey, logKey, outcomeKey } from "#shared/queue/keys.js";
import { parseLabels } from "#shared/queue/pieces/job.js";
import { endLater } from "#shared/queue/jobs/end-later.js";
import { putOff } from "#shared/queue/jobs/put-off.js";
import { readJob } from "#shared/queue/jobs/read.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import type { Bus } from "#shared/nats/connect.js";
import { readTraceparent } from "#shared/trace/context.js";
import { askRedis } from "../admission/ask-redis.js";
import { endRequest, type EndedRequest } from "../admission/end-request.js";
import { submitJob } from "../admission/submit-job.js";
import type { TensorPrinter } from "../formats/kserve/tensor-printer.js";
import { readEnvelope } from "./envelope.js";
import type { JobOptions } from "./options.js";
import { prepare, type Shown } from "./prepare.js";
import { renderEnd } from "./render-end.js";
import { mayFitLater } from "./repeats.js";
import { isKept, readResult } from "./result.js";
import type { ModelName } from "../fleet/models.js";
import { Submissions, tracedRun, type JobLooks, type JobTerms, type SubmissionSettings } from "./submissions.js";
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
  readonly #settings: JobsSettings;

  constructor(settings: JobsSettings) {
    this.#settings = settings;
    this.submissions = new Submissions(settings, this);
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

  /**
   * Queues a new request for a job that waits, or has ended, unless the job has changed since this
   * view.
   * @param mayUse whether the model of a name exists for the job
   * @throws InferenceError `job_not_retryable` if the job has changed, or its body is gone
   */
  async runAgain(job: RequestAddress, view: JobView, waitMs: number, terms: JobTerms): Promise<void> {
    const { queue, jobTtlMs, tracerOf } = this.#settings;
    const options = JSON.parse(view.options) as JobOptions;
    const fields = ["body", "labels", "trace"] as const;
    const [body, labels, trace] = await askRedis(() => queue.redis.hmgetBuffer(jobKey(job), ...fields));
    if (!body) throw fixedError("job_not_retryable", "body");
    const target = this.submissions.target({
      tenant: job.tenant,
      model: job.model,
      version: options.version ?? undefined,
      ...terms,
    });
    const { run } = await prepare(target, readEnvelope(body), options, waitMs);
    const again = { job: requestName(job), ...stageOf(view) };
    const part = { keptMs: options.result_ttl, record: undefined, again };
    // The new request has the job's bucket, which for a step is the bucket of its sequence anyway.
    const address = view.made === 0 ? job : { ...job, request: `${job.request}-${view.made + 1}` };
    // Keeps the job at least as long as Redis keeps idempotency keys.
    const settings = { ...this.#settings, jobTtlMs: Math.max(jobTtlMs, queue.idempotencyTtlMs) };
    const traced = tracedRun(run, tracerOf?.(job.model), readTraceparent(trace?.toString()));
    await submitJob(settings, traced, address, { part, asked: "", labels: parseLabels(labels?.toString()) });
  }

  /**
   * Renders a job that the gateway has just queued. If the read fails, the error must not say that
   * the job was not queued: the client would send the job again, and have two jobs.
   * @throws InferenceError `outcome_unknown`
   */
  async tellQueued(job: RequestAddress, secret?: string): Promise<ToldJob> {
    try {
      return await this.render(job, await this.read(job), secret);
    } catch (cause) {
      if (!(cause instanceof InferenceError)) throw cause;
      throw fixedError("outcome_unknown", "admission", { cause });
    }
  }

  async tell(job: RequestAddress): Promise<ToldJob> {
    return this.render(job, await this.read(job));
  }

  /**
   * Reads a job. Ends a job that has waited for too long, because the gateway that should do so may
   * be dead.
   * @throws InferenceError `unknown_job` or `unavailable`
   */
  async read(job: RequestAddress): Promise<JobView> {
    const view = await this.look(job);
    if (view === undefined) throw fixedError("unknown_job", "usual");
    if (!["queued", "scheduled"].includes(view.state) || view.leftMs > 0) return view;
    await this.end(job, view, "expired");
    return (await this.look(job)) ?? view;
  }

  /** @returns undefined if there is no such job */
  look(job: RequestAddress): Promise<JobView | undefined> {
    const { redis, buckets } = this.#settings.queue;
    return askRedis(() => readJob(redis, job, buckets));
  }

  /** Ends a job that has not ended, unless the job has changed since this view. */
  async end(job: RequestAddress, view: JobView, code: "cancelled" | "expired"): Promise<void> {
    const { queue, bus, jobTtlMs: ttlMs } = this.#settings;
    const message = code === "cancelled" ? errorKinds.cancelled.texts.byClient : errorKinds.expired.texts.beforeResult;
    if (view.state === "scheduled") return this.endWaiting(job, view, { code, message });
    const stream = (JSON.parse(view.shown) as Shown).as !== "tensors";
    const ending = { code, message, ttlMs, stream, unlessBegun: code === "expired" };
    const request = requestOf(job, view);
    const counted = ({ wasQueued, ends, ms }: EndedRequest) => {
      if (code === "cancelled") ends.cancelled("deleted", ms);
      else ends.expired(wasQueued ? "queue" : "run", ms);
    };
    await askRedis(() => endRequest({ redis: queue.redis, bus }, request, ending, { counted }));
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
  mayFitLater({ code }: InferenceError, { model }: Pick<ModelName, "model">, isLate: boolean): boolean {
    return mayFitLater(code, model, this.#settings.fleet.directory.all(), isLate);
  }

  /**
   * Renders a job for its client, with the result if the result is short.
   * @param secret of the job's own webhook, for the client that has submitted the job
   */
  async render(job: RequestAddress, view: JobView, secret?: string): Promise<ToldJob> {
    const result = await this.#inline(job, view, LONGEST_INLINE);
    return { id: encodeJobId(job), view: renderView(job, view, { result, secret, showsWebhook: true }) };
  }

  /** The result as JSON, if the JSON has at most `most` bytes. */
  async #inline(job: RequestAddress, view: JobView, most: number): Promise<string | undefined> {
    if (view.state !== "completed" || !isKept(view)) return undefined;
    if (view.resultBytes > RAW_FACTOR * most || view.records > most) return undefined;
    const { queue, printer } = this.#settings;
    const rendering = async () => renderEnd(await readResult(queue.redis, view, requestOf(job, view)), printer);
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
