/**
 * Submits jobs: reads a client's body or stored bytes, and queues the job or lets the job wait for
 * its time.
 */
import { fixedError, InferenceError } from "#shared/errors.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { jobKey } from "#shared/queue/keys.js";
import { labelsText, type JobRecord } from "#shared/queue/pieces/job.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import { writeTraceparent, type SpanIds } from "#shared/trace/context.js";
import type { Tracer } from "#shared/trace/span.js";
import type { RequestBudget } from "../admission/budget.js";
import { askRedis } from "../admission/ask-redis.js";
import { jobAddress } from "../admission/request-id.js";
import { submitJob, type JobRequest, type JobSettings } from "../admission/submit-job.js";
import { submitLater } from "../admission/submit-later.js";
import { JobTrace } from "../trace/job-trace.js";
import { visible, type ModelDirectory, type ModelName } from "../fleet/models.js";
import type { Limits } from "../formats/limits.js";
import type { RequestReader } from "../formats/kserve/request-reader.js";
import { SealedError, type SecretBox } from "../webhooks/secrets.js";
import { parseTarget } from "../webhooks/target.js";
import { ownerOf, UnreadableError } from "../webhooks/webhook.js";
import { keptBody, readEnvelope, type JobType } from "./envelope.js";
import { checkedWait, dueOf, readOptions, tokensOf, type JobOptions } from "./options.js";
import { prepare, type Prepared, type Preparing } from "./prepare.js";
import { repeatsOf } from "./repeats.js";
import { encodeJobId, type ToldJob } from "./view.js";
import { readJobWebhook, recordedWebhook, type GivenWebhook, type WebhookTerms } from "./webhook.js";

export interface SubmissionSettings extends JobSettings {
  readonly fleet: { readonly directory: ModelDirectory };
  readonly reader: RequestReader;
  readonly limits: Limits;
  /** How long Redis keeps the result of a job that names no time, in ms. */
  readonly resultTtlMs: number;
  /** Whether the stream of a job with labels is also published under each label. */
  readonly publishesLabels: boolean;
  readonly box: SecretBox;
  readonly hooks: WebhookTerms;
  /** Gives the tracer for runs of a model, if they are traced; absent without traces. */
  readonly tracerOf?: ((model: string) => Tracer | undefined) | undefined;
}

/** Reads jobs and renders their views. */
export interface JobLooks {
  /** @returns undefined if there is no such job */
  look(job: RequestAddress): Promise<JobView | undefined>;
  /** @throws InferenceError `unknown_job` or `unavailable` */
  tell(job: RequestAddress): Promise<ToldJob>;
  /**
   * Renders a job that the caller has just queued.
   * @param secret of the job's own webhook, for the client that has submitted the job
   * @throws InferenceError `outcome_unknown`
   */
  tellQueued(job: RequestAddress, secret?: string): Promise<ToldJob>;
}

/** What a job may do. */
export interface JobTerms {
  /** Whether the model of this name exists for the job. */
  readonly mayUse: (model: string) => boolean;
  /** Absent if neither client nor tenant has limits. */
  readonly budget?: RequestBudget | undefined;
}

/** The model and the tenant of a job. */
export interface JobPlace extends ModelName, JobTerms {
  readonly tenant: string;
}

/** A job that Redis keeps as bytes until its time, for example the job of a schedule. */
export interface StoredJob extends JobPlace {
  /** The body, as a client sends it. */
  readonly body: Buffer;
  /**
   * Names the job for ever, because the job's id is made from this key. The key contains a line
   * break, so no client's key is the same.
   */
  readonly key: string;
  /** The schedule of the job, and the time of the schedule, in ms since 1970. */
  readonly tick: { readonly schedule: string; readonly at: number };
  /** The span of the schedule's submission; absent if the submission is not sampled. */
  readonly submission?: SpanIds | undefined;
}

/** A job as its client has sent it. */
export interface SentJob {
  readonly type: JobType;
  readonly options: JobOptions;
  readonly prepared: Prepared;
  /** The part of the body that Redis keeps. */
  readonly body: Buffer;
  /** How long the job may wait from its first due time, in ms. */
  readonly waitMs: number;
  /**
   * Why the job can no longer keep its times. Then the submission only counts as a repetition,
   * under the same key, of a submission that came in time.
   */
  readonly tooLate: InferenceError | undefined;
  /** The job's own webhook. */
  readonly webhook?: GivenWebhook | undefined;
  /** The span of the submission; absent if the submission is not sampled. */
  readonly submission?: SpanIds | undefined;
}

export class Submissions {
  readonly #settings: SubmissionSettings;
  readonly #jobs: JobLooks;

  constructor(settings: SubmissionSettings, jobs: JobLooks) {
    this.#settings = settings;
    this.#jobs = jobs;
  }

  /**
   * Finds the model for the body of a job, and collects the terms for the body's reader.
   * @param stillWanted absent if no client waits for the body
   * @throws InferenceError if no worker serves such a model, or the job may not use it
   */
  target(place: JobPlace, idempotencyKey?: string, stillWanted?: () => void): Preparing {
    const { tenant, model: name, version, mayUse, budget } = place;
    const { fleet, reader, limits } = this.#settings;
    const directory = visible(fleet.directory, mayUse);
    const model = directory.find(name, version);
    const others = directory.others(model);
    const wanted = stillWanted && { stillWanted };
    return { tenant, budget, model, version, others, directory, reader, limits, idempotencyKey, ...wanted };
  }

  /** @throws InferenceError */
  async read(target: Preparing, body: Buffer): Promise<SentJob> {
    const envelope = readEnvelope(body);
    const own = envelope.options["webhook"] ?? undefined;
    const webhook = own === undefined ? undefined : await readJobWebhook(own, target.tenant, this.#settings.hooks);
    const options = readOptions(envelope.options, this.#settings, target.version, webhook?.shown);
    const { waitMs, tooLate } = waitOrRefusal(options);
    if (tooLate !== undefined && target.idempotencyKey === undefined) throw tooLate;
    // The reader takes the memory of a long body.
    const kept = keptBody(envelope, body);
    const prepared = await prepare(target, envelope, options, waitMs);
    return { type: envelope.type, options, prepared, body: kept, waitMs, tooLate, webhook };
  }

  /**
   * Queues and records a stored job, unless an earlier call has done so under its key.
   * @throws InferenceError
   */
  async submitStored({ body, key, tick, submission, ...place }: StoredJob): Promise<ToldJob> {
    const sent = await this.read(this.target(place, key), body);
    try {
      return await this.submit({ ...sent, submission }, tick);
    } catch (error) {
      if (!(error instanceof InferenceError && error.code === "idempotency_mismatch")) throw error;
      // The earlier call was for another version of the model, or wrote the request as another
      // version does.
      return this.#jobs.tell(jobAddress(sent.prepared.run.request, this.#settings.queue));
    }
  }

  /**
   * Finds a stored job that an earlier call has submitted.
   * @returns its id; undefined if there is no such job, or no longer
   * @throws InferenceError
   */
  async findStored({ body, key, ...place }: StoredJob): Promise<string | undefined> {
    const { prepared } = await this.read(this.target(place, key), body);
    const job = jobAddress(prepared.run.request, this.#settings.queue);
    return (await this.#jobs.look(job)) === undefined ? undefined : encodeJobId(job);
  }

  /**
   * Records a job and queues the job in one step, or notes in that step when the job is due.
   * @returns `isReplayed`: the job exists already, under the same key
   * @throws InferenceError
   */
  async submit(
    { type, options, prepared, body, waitMs, tooLate, webhook, submission }: SentJob,
    tick?: StoredJob["tick"],
  ): Promise<ToldJob & { readonly isReplayed: boolean }> {
    const { run, shown, timeoutMs } = prepared;
    const { queue, box, publishesLabels, tracerOf } = this.#settings;
    const address = jobAddress(run.request, queue);
    const ofTick = tick && { schedule: tick.schedule, tick: String(tick.at) };
    const own = webhook && recordedWebhook(box, address.tenant, encodeJobId(address), webhook);
    const due = dueOf(options);
    const repeats = repeatsOf(options, queue);
    const labels = publishesLabels && run.kind === "text" ? tokensOf(options) : [];
    const record: JobRecord = {
      type,
      options: JSON.stringify(options),
      shown: JSON.stringify(shown),
      body,
      ...ofTick,
      ...own,
      ...(repeats !== undefined && { repeats }),
      ...((repeats ?? due) !== undefined && { wait: String(waitMs) }),
      ...(labels.length > 0 && { labels: labelsText(labels) }),
      ...(submission !== undefined && { trace: writeTraceparent(submission) }),
    };
    if (tooLate !== undefined && (await this.#jobs.look(address)) === undefined) throw tooLate;
    const part = { keptMs: options.result_ttl, record };
    const asked = JSON.stringify([type, options, shown, timeoutMs, ...(webhook ? [webhook.digest] : [])]);
    const said =
      due === undefined
        ? await submitJob(this.#settings, tracedRun(run, tracerOf?.(address.model), submission), address, {
            part,
            asked,
            labels,
          })
        : await submitLater(this.#settings, run, address, { record, asked, due });
    const secret = webhook && "url" in webhook.shown ? await this.#secretOf(address) : undefined;
    return { ...(await this.#jobs.tellQueued(address, secret)), isReplayed: said === "known" };
  }

  /**
   * The secret of a job's own webhook, as the first submission has written the secret. Only the
   * client that submits the job, or repeats the submission under its key, gets the secret.
   */
  async #secretOf(job: RequestAddress): Promise<string | undefined> {
    const { queue, box } = this.#settings;
    try {
      const text = await askRedis(() => queue.redis.hget(jobKey(job), "target"));
      const target = parseTarget(text ?? "");
      return "url" in target ? box.open(target.secret, ownerOf({ ...job, id: encodeJobId(job) })) : undefined;
    } catch (cause) {
      // The job is queued, but without the secret its client could verify no message.
      if (cause instanceof InferenceError) throw fixedError("outcome_unknown", "admission", { cause });
      if (cause instanceof SealedError || cause instanceof UnreadableError) return undefined;
      throw cause;
    }
  }
}

/** The run of a job, in a trace of its own if the submission was sampled. */
export function tracedRun(run: JobRequest, tracer: Tracer | undefined, submission: SpanIds | undefined): JobRequest {
  if (tracer === undefined || submission === undefined) return run;
  const trace = new JobTrace(tracer, submission);
  if (run.kind === "text") return { ...run, request: { ...run.request, trace } };
  return { ...run, request: { ...run.request, trace } };
}

function waitOrRefusal(options: JobOptions): Pick<SentJob, "waitMs" | "tooLate"> {
  try {
    return { waitMs: checkedWait(options, Date.now()), tooLate: undefined };
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    return { waitMs: 1, tooLate: error };
  }
}
