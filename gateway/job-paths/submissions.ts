/**
 * Submits jobs: reads what a client has sent, or what was kept until now, and queues it or has it
 * wait for its time.
 */
import { fixedError, InferenceError } from "#shared/errors.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { jobKey } from "#shared/queue/keys.js";
import { labelsText, type JobRecord } from "#shared/queue/pieces/job.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import { askRedis } from "../admission/ask-redis.js";
import { jobAddress } from "../admission/request-id.js";
import { submitJob, type JobSettings } from "../admission/submit-job.js";
import { submitLater } from "../admission/submit-later.js";
import type { ModelDirectory } from "../fleet/models.js";
import type { Limits } from "../http/limits.js";
import type { RequestReader } from "../kserve/http/request-reader.js";
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
  /** How long a result is kept where its job does not say, in ms. */
  readonly resultTtlMs: number;
  /** Whether the streams of jobs with labels are published for each label, too. */
  readonly publishesLabels: boolean;
  readonly box: SecretBox;
  readonly hooks: WebhookTerms;
}

/** Tells of jobs that are there. */
export interface JobLooks {
  /** @returns undefined where there is no such job */
  look(job: RequestAddress): Promise<JobView | undefined>;
  /** @throws InferenceError `unknown_job` or `unavailable` */
  tell(job: RequestAddress): Promise<ToldJob>;
  /**
   * The same of a job that was queued just now.
   * @param secret of a webhook of its own, for who has submitted it
   * @throws InferenceError `outcome_unknown`
   */
  tellQueued(job: RequestAddress, secret?: string): Promise<ToldJob>;
}

/** Which model a job is for, and whose it is. */
export interface JobPlace {
  readonly tenant: string;
  readonly model: string;
  /** Undefined: the latest. */
  readonly version: string | undefined;
}

/** A job that is kept as bytes until it is time, such as that of a schedule. */
export interface StoredJob extends JobPlace {
  /** As a client sends it. */
  readonly body: Buffer;
  /**
   * Names the job for ever: its id is made of it. With a line break in it, no client has the same.
   */
  readonly key: string;
  /** Which schedule it is of, and at which of its times, in ms since 1970. */
  readonly tick: { readonly schedule: string; readonly at: number };
}

/** A job as its client has sent it. */
export interface SentJob {
  readonly type: JobType;
  readonly options: JobOptions;
  readonly prepared: Prepared;
  /** What is kept of the body. */
  readonly body: Buffer;
  /** How long it may wait from when it is first due, in ms. */
  readonly waitMs: number;
  /**
   * Why its times cannot be kept. Then it is good only as the repetition of a submission under the
   * same key that came in time.
   */
  readonly tooLate: InferenceError | undefined;
  /** Of its own. */
  readonly webhook?: GivenWebhook | undefined;
}

export class Submissions {
  readonly #settings: SubmissionSettings;
  readonly #jobs: JobLooks;

  constructor(settings: SubmissionSettings, jobs: JobLooks) {
    this.#settings = settings;
    this.#jobs = jobs;
  }

  /**
   * What the body of a job is read for.
   * @param stillWanted absent where nobody waits for it
   * @throws InferenceError where no such model is served
   */
  target({ tenant, model: name, version }: JobPlace, idempotencyKey?: string, stillWanted?: () => void): Preparing {
    const { fleet, reader, limits } = this.#settings;
    const { directory } = fleet;
    const model = directory.find(name, version);
    const others = directory.others(model);
    const wanted = stillWanted && { stillWanted };
    return { tenant, model, version, others, directory, reader, limits, idempotencyKey, ...wanted };
  }

  /** @throws InferenceError */
  async read(target: Preparing, body: Buffer): Promise<SentJob> {
    const envelope = readEnvelope(body);
    const own = envelope.options["webhook"] ?? undefined;
    const webhook = own === undefined ? undefined : await readJobWebhook(own, target.tenant, this.#settings.hooks);
    const options = readOptions(envelope.options, this.#settings, target.version, webhook?.shown);
    const { waitMs, tooLate } = waitOrRefusal(options);
    if (tooLate !== undefined && target.idempotencyKey === undefined) throw tooLate;
    const prepared = await prepare(target, envelope, options, waitMs);
    return { type: envelope.type, options, prepared, body: keptBody(envelope, body), waitMs, tooLate, webhook };
  }

  /**
   * Queues and records a job that was kept until now, unless that was done before under its key.
   * @throws InferenceError
   */
  async submitStored({ body, key, tick, ...place }: StoredJob): Promise<ToldJob> {
    const sent = await this.read(this.target(place, key), body);
    try {
      return await this.submit(sent, tick);
    } catch (error) {
      if (!(error instanceof InferenceError && error.code === "idempotency_mismatch")) throw error;
      // It was submitted for another version of the model, or in another one's words.
      return this.#jobs.tell(jobAddress(sent.prepared.run.request, this.#settings.queue));
    }
  }

  /**
   * Whether a stored job was submitted.
   * @returns its id; undefined where it was not, or is known no more
   * @throws InferenceError
   */
  async findStored({ body, key, ...place }: StoredJob): Promise<string | undefined> {
    const { prepared } = await this.read(this.target(place, key), body);
    const job = jobAddress(prepared.run.request, this.#settings.queue);
    return (await this.#jobs.look(job)) === undefined ? undefined : encodeJobId(job);
  }

  /**
   * Records a job and queues it, in one step, or notes in that step when it is due.
   * @returns `isReplayed`: it was there before, under the same key
   * @throws InferenceError
   */
  async submit(
    { type, options, prepared, body, waitMs, tooLate, webhook }: SentJob,
    tick?: StoredJob["tick"],
  ): Promise<ToldJob & { readonly isReplayed: boolean }> {
    const { run, shown, timeoutMs } = prepared;
    const { queue, box, publishesLabels } = this.#settings;
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
    };
    if (tooLate !== undefined && (await this.#jobs.look(address)) === undefined) throw tooLate;
    const part = { keptMs: options.result_ttl, record };
    const asked = JSON.stringify([type, options, shown, timeoutMs, ...(webhook ? [webhook.digest] : [])]);
    const said =
      due === undefined
        ? await submitJob(this.#settings, run, address, { part, asked, labels })
        : await submitLater(this.#settings, run, address, { record, asked, due });
    const secret = webhook && "url" in webhook.shown ? await this.#secretOf(address) : undefined;
    return { ...(await this.#jobs.tellQueued(address, secret)), isReplayed: said === "known" };
  }

  /**
   * The secret of a job's own webhook, as the submission has written it that came first. Only who
   * submits the job, or repeats that under its key, is told.
   */
  async #secretOf(job: RequestAddress): Promise<string | undefined> {
    const { queue, box } = this.#settings;
    try {
      const text = await askRedis(() => queue.redis.hget(jobKey(job), "target"));
      const target = parseTarget(text ?? "");
      return "url" in target ? box.open(target.secret, ownerOf({ ...job, id: encodeJobId(job) })) : undefined;
    } catch (cause) {
      // It is queued, and without the secret its client could verify nothing.
      if (cause instanceof InferenceError) throw fixedError("outcome_unknown", "admission", { cause });
      if (cause instanceof SealedError || cause instanceof UnreadableError) return undefined;
      throw cause;
    }
  }
}

function waitOrRefusal(options: JobOptions): Pick<SentJob, "waitMs" | "tooLate"> {
  try {
    return { waitMs: checkedWait(options, Date.now()), tooLate: undefined };
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    return { waitMs: 1, tooLate: error };
  }
}
