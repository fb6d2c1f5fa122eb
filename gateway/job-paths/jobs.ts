/**
 * The operations on a job: submit, look, fetch, cancel, run once more, list. Every gateway offers
 * them for every job, whichever gateway took it, since all that is known of one is in Redis.
 */
import { outcomeOf, readOutcome } from "#shared/contract/outcome.js";
import { errorKinds, fixedError, InferenceError } from "#shared/errors.js";
import { decodeRequestId, parseRequestName, requestName, type RequestAddress } from "#shared/queue/address.js";
import type { NotedJob } from "#shared/queue/job-events.js";
import { jobKey, jobsKey, logKey, outcomeKey } from "#shared/queue/keys.js";
import { stageText, type JobRecord } from "#shared/queue/job.js";
import { endLater } from "#shared/queue/jobs/end-later.js";
import { putOff } from "#shared/queue/jobs/put-off.js";
import { newestJobs, type JobFilters } from "#shared/queue/jobs/list.js";
import { readJob } from "#shared/queue/jobs/read.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import type { Bus } from "#shared/nats/connect.js";
import { askRedis } from "../admission/ask-redis.js";
import { endRequest } from "../admission/end-request.js";
import { jobAddress } from "../admission/request-id.js";
import { submitJob, type JobSettings } from "../admission/submit-job.js";
import { submitLater } from "../admission/submit-later.js";
import type { ModelDirectory } from "../fleet/models.js";
import { errorReply } from "../http/errors.js";
import type { Limits } from "../http/limits.js";
import type { Reply } from "../http/reply.js";
import type { RequestReader } from "../kserve/http/request-reader.js";
import type { TensorPrinter } from "../kserve/http/tensor-printer.js";
import { DeadRequests } from "./dead.js";
import { keptBody, readEnvelope, type JobType } from "./envelope.js";
import { checkedWait, dueOf, readOptions, waitOf, type JobOptions } from "./options.js";
import { indexId, listPage } from "./pages.js";
import { prepare, type Prepared, type Preparing, type Shown } from "./prepare.js";
import { isKept, renderResult } from "./result.js";
import { SealedError, type SecretBox } from "../webhooks/secrets.js";
import { parseTarget } from "../webhooks/target.js";
import { ownerOf, UnreadableError } from "../webhooks/webhook.js";
import { repeatsOf } from "./repeats.js";
import { encodeJobId, renderView, requestOf, stageOf, viewOfNoted } from "./view.js";
import { readJobWebhook, recordedWebhook, type GivenWebhook, type WebhookTerms } from "./webhook.js";

export interface JobsSettings extends JobSettings {
  readonly bus: Bus;
  readonly fleet: { readonly directory: ModelDirectory };
  readonly reader: RequestReader;
  readonly limits: Limits;
  readonly printer: TensorPrinter;
  /** How long a result is kept where its job does not say, in ms. */
  readonly resultTtlMs: number;
  readonly box: SecretBox;
  readonly hooks: WebhookTerms;
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
  /** Its times cannot be kept, so it only counts where it was submitted in time under its key. */
  readonly tooLate: InferenceError | undefined;
  /** Of its own. */
  readonly webhook?: GivenWebhook | undefined;
}

export interface ToldJob {
  readonly id: string;
  /** JSON. */
  readonly view: string;
}

/** Longer results are not told with the view, in bytes of JSON. */
const LONGEST_INLINE = 65_536;
/** The same of the view in an event. */
const LONGEST_IN_EVENT = 16_384;
/** No JSON comes of a result that is shorter than one of its bytes in so many. */
const RAW_FACTOR = 8;

export class Jobs {
  /** Requests that were set aside, of jobs and of others. */
  readonly dead: DeadRequests;
  readonly #settings: JobsSettings;

  constructor(settings: JobsSettings) {
    this.#settings = settings;
    this.dead = new DeadRequests(settings.queue);
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
      return this.#tell(jobAddress(sent.prepared.run.request, this.#settings.queue));
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
    return (await this.look(job)) === undefined ? undefined : encodeJobId(job);
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
    const { queue, box } = this.#settings;
    const address = jobAddress(run.request, queue);
    const ofTick = tick && { schedule: tick.schedule, tick: String(tick.at) };
    const own = webhook && recordedWebhook(box, address.tenant, encodeJobId(address), webhook);
    const due = dueOf(options);
    const repeats = repeatsOf(options, queue);
    const record: JobRecord = {
      type,
      options: JSON.stringify(options),
      shown: JSON.stringify(shown),
      body,
      ...ofTick,
      ...own,
      ...(repeats !== undefined && { repeats }),
      ...((repeats ?? due) !== undefined && { wait: String(waitMs) }),
    };
    if (tooLate !== undefined && (await this.look(address)) === undefined) throw tooLate;
    const part = { keptMs: options.result_ttl, record };
    const asked = JSON.stringify([type, options, shown, timeoutMs, ...(webhook ? [webhook.digest] : [])]);
    const said =
      due === undefined
        ? await submitJob(this.#settings, run, address, { part, asked })
        : await submitLater(this.#settings, run, address, { record, asked, due });
    const secret = webhook && "url" in webhook.shown ? await this.#secretOf(address) : undefined;
    return { ...(await this.#tellQueued(address, secret)), isReplayed: said === "known" };
  }

  /**
   * How a job stood when something happened to it, for webhooks.
   * @returns its id, and its view as JSON; without the result where that is long, or is gone
   */
  async toldOf(job: RequestAddress, noted: NotedJob): Promise<ToldJob> {
    const { redis } = this.#settings.queue;
    const request = { ...job, ...parseRequestName(noted.request) };
    const [shown, resultBytes, records] = await Promise.all([
      redis.hget(jobKey(job), "shown"),
      redis.hstrlen(outcomeKey(request), "body"),
      redis.llen(logKey(request)),
    ]);
    // What it has generated since it began is not how it stood then.
    const then = noted.state === "running" ? 0 : records;
    const view = viewOfNoted(noted, { shown: shown ?? undefined, resultBytes, records: then });
    const result = shown === null ? undefined : await this.#inline(job, view, LONGEST_IN_EVENT);
    return { id: encodeJobId(job), view: renderView(job, view, { result }) };
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
    if (view.endedAt === undefined) throw fixedError("job_not_ended", "usual");
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
    // Between two looks its request may have failed, and it is to be run once more.
    for (let ended = ""; view.endedAt === undefined && stageText(stageOf(view)) !== ended;) {
      ended = stageText(stageOf(view));
      await this.#end(job, view, "cancelled");
      view = await this.#read(job);
    }
    return { ...(await this.#render(job, view)), isOver: view.state !== "cancelled" };
  }

  /**
   * Queues a new request for a job that has failed or expired, unless somebody else has done so
   * meanwhile.
   * @throws InferenceError
   */
  async retry(tenant: string, id: string): Promise<ToldJob> {
    const job = addressOf(tenant, id);
    const view = await this.#read(job);
    if (view.state !== "failed" && view.state !== "expired") throw fixedError("job_not_retryable", "usual");
    const waitMs = waitOf(JSON.parse(view.options) as JobOptions, Date.now());
    if (waitMs === undefined) throw fixedError("job_not_retryable", "deadline");
    await this.runAgain(job, view, waitMs);
    return this.#tellQueued(job);
  }

  /**
   * Queues a new request for a job that waits, or has ended, unless it has changed since this view.
   * @throws InferenceError `job_not_retryable` where it has changed, or what it was sent is gone
   */
  async runAgain(job: RequestAddress, view: JobView, waitMs: number): Promise<void> {
    const { queue, jobTtlMs } = this.#settings;
    const options = JSON.parse(view.options) as JobOptions;
    const body = await askRedis(() => queue.redis.hgetBuffer(jobKey(job), "body"));
    if (body === null) throw fixedError("job_not_retryable", "body");
    const target = this.target({ tenant: job.tenant, model: job.model, version: options.version ?? undefined });
    const { run } = await prepare(target, readEnvelope(body), options, waitMs);
    const again = { job: requestName(job), ...stageOf(view) };
    const part = { keptMs: options.result_ttl, record: undefined, again };
    // The bucket is that of the job; for a step it is that of its sequence anyway.
    const address = view.made === 0 ? job : { ...job, request: `${job.request}-${view.made + 1}` };
    // The job's key is remembered as long as any.
    const settings = { ...this.#settings, jobTtlMs: Math.max(jobTtlMs, queue.idempotencyTtlMs) };
    await submitJob(settings, run, address, { part, asked: "" });
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
    const told = jobs.map(({ job, view }) => ({ id: encodeJobId(job), view: renderView(job, view, {}) }));
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
  async #tellQueued(job: RequestAddress, secret?: string): Promise<ToldJob> {
    try {
      return await this.#render(job, await this.#read(job), secret);
    } catch (cause) {
      if (!(cause instanceof InferenceError)) throw cause;
      throw fixedError("outcome_unknown", "admission", { cause });
    }
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

  async #tell(job: RequestAddress): Promise<ToldJob> {
    return this.#render(job, await this.#read(job));
  }

  /**
   * Reads how a job stands. One that has waited for too long is ended: the gateway that was to do
   * so may be gone.
   */
  async #read(job: RequestAddress): Promise<JobView> {
    const view = await this.look(job);
    if (view === undefined) throw fixedError("unknown_job", "usual");
    if (!["queued", "scheduled"].includes(view.state) || view.leftMs > 0) return view;
    await this.#end(job, view, "expired");
    return (await this.look(job)) ?? view;
  }

  /** @returns undefined where there is no such job */
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

  /** Ends a job that waits for its time, unless it has changed since this view. */
  async endWaiting(job: RequestAddress, view: JobView, error: Pick<InferenceError, "code" | "message">): Promise<void> {
    const { queue, jobTtlMs } = this.#settings;
    const ttlMs = Math.max(jobTtlMs, queue.idempotencyTtlMs);
    await askRedis(() => endLater(queue.redis, job, stageOf(view), error, ttlMs));
  }

  /**
   * Has a job that is due come again, unless it has changed since this view.
   * @returns after how many ms; undefined where it has changed
   */
  putOff(job: RequestAddress, view: JobView): Promise<number | undefined> {
    return askRedis(() => putOff(this.#settings.queue.redis, job, stageOf(view), view.leftMs));
  }

  /**
   * Whether a job that was refused so now may be taken later, as it is.
   * @param isLate it was refused for some time
   */
  mayFitLater({ code }: InferenceError, { model }: Pick<JobPlace, "model">, isLate: boolean): boolean {
    if (code !== "unknown_model") return errorKinds[code].retry;
    const served = this.#settings.fleet.directory.all();
    // Where no worker lives, nothing says which models there will be; and the only worker of one
    // may just be started anew.
    return served.length === 0 || (!isLate && !served.some(({ name }) => name === model));
  }

  async #render(job: RequestAddress, view: JobView, secret?: string): Promise<ToldJob> {
    const result = await this.#inline(job, view, LONGEST_INLINE);
    return { id: encodeJobId(job), view: renderView(job, view, { result, secret, showsWebhook: true }) };
  }

  /** The result as JSON where that takes no more than `most` bytes. */
  async #inline(job: RequestAddress, view: JobView, most: number): Promise<string | undefined> {
    if (view.state !== "completed" || !isKept(view, Date.now())) return undefined;
    if (view.resultBytes > RAW_FACTOR * most || view.records > most) return undefined;
    const { queue, printer } = this.#settings;
    const rendering = () => renderResult({ redis: queue.redis, printer }, view, requestOf(job, view));
    try {
      const { headers, body } = await askRedis(rendering);
      const text = body.join("");
      const isJson = headers["content-type"] === "application/json";
      return isJson && Buffer.byteLength(text) <= most ? text : undefined;
    } catch (error) {
      // It may have expired meanwhile, or be no JSON.
      if (error instanceof InferenceError && error.code !== "unavailable") return undefined;
      throw error;
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
