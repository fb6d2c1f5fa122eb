/**
 * The operations on requests that were set aside, because a worker died each time that the request
 * ran alone. The tenant can read such a request for a week, and can retry the job if the request
 * ran for a job.
 */
import { decodeCorrelationId } from "#shared/contract/sequence.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { decodeRequestId, encodeRequestId, parseRequestName } from "#shared/queue/address.js";
import {
  readDeadRequest,
  removeDeadRequest,
  type DeadPlace,
  type DeadRequest,
} from "#shared/queue/dead/dead-request.js";
import { listDeadRequests } from "#shared/queue/dead/list.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis } from "../admission/ask-redis.js";
import { encodeJobId, type ToldJob } from "../jobs/view.js";
import type { Caller } from "./caller.js";
import type { JobService } from "./jobs.js";
import type { Page, PageTerms } from "./page.js";

export interface DeadServiceSettings {
  readonly redis: RedisClient;
  readonly buckets: number;
  readonly jobs: Pick<JobService, "retry">;
}

/** The view of the request for clients. */
export interface DeadView {
  readonly id: string;
  readonly object: "dead_request";
  readonly model: string;
  readonly reason: string;
  readonly runs: number;
  readonly set_aside_at: string;
  readonly request_id: string | null;
  readonly job: string | null;
  readonly sequence_id: number | string | null;
  readonly step: number | null;
  readonly bytes: number;
}

const ID = /^dead_(\d{1,15}-\d{1,15})\.(.+)$/;

export class DeadService {
  readonly #settings: DeadServiceSettings;

  constructor(settings: DeadServiceSettings) {
    this.#settings = settings;
  }

  /**
   * Lists the requests, the newest first. A page may begin behind a request that Redis has
   * forgotten.
   * @param model undefined for the requests to all models
   * @returns the page, and the id behind which the next page begins; undefined if the page has
   * looked at no request
   * @throws InferenceError
   */
  async list(
    { tenant }: Caller,
    { limit, after }: PageTerms,
    model: string | undefined,
  ): Promise<Page<DeadView> & { readonly last: string | undefined }> {
    const { redis, buckets } = this.#settings;
    const from = after === undefined ? undefined : decodeDeadId(after);
    if (after !== undefined && from === undefined) {
      throw new InferenceError("invalid_argument", "after must be the id of a request that was set aside");
    }
    const query = { tenant, from, most: limit + 1 };
    const pages = await askRedis(() =>
      Promise.all(Array.from({ length: buckets }, (_, bucket) => listDeadRequests(redis, bucket, query))),
    );
    // Only requests before the place of the slowest bucket are final.
    const [end] = pages.flatMap(({ next }) => next ?? []).sort(compare);
    const isAsked = (one: DeadRequest) => model === undefined || one.model === model;
    const all = pages.flatMap(({ found }) => found.filter(isAsked)).sort(compare);
    const known = end === undefined ? all : all.filter((one) => compare(one, end) <= 0);
    const told = known.slice(0, limit);
    const isCut = known.length > limit;
    const last = isCut ? told.at(-1) : (end ?? told.at(-1));
    return { data: told.map(viewOf), hasMore: isCut || end !== undefined, last: last && encodeDeadId(last) };
  }

  /** @throws InferenceError `unknown_dead` or `unavailable` */
  async view(caller: Caller, id: string): Promise<DeadView> {
    return viewOf(await this.#find(caller, id));
  }

  /**
   * Runs the job of a request once more, and forgets the request.
   * @throws InferenceError `unknown_dead`, `dead_not_retryable`, `unavailable`, or as a job's retry
   */
  async retry(caller: Caller, id: string): Promise<ToldJob> {
    const { redis, jobs } = this.#settings;
    const found = await this.#find(caller, id);
    const { job } = viewOf(found);
    if (job === null) throw fixedError("dead_not_retryable", "usual");
    const told = await jobs.retry(caller, job);
    await askRedis(() => removeDeadRequest(redis, found));
    return told;
  }

  async #find({ tenant }: Caller, id: string): Promise<DeadRequest> {
    const place = decodeDeadId(id);
    const found = place && (await askRedis(() => readDeadRequest(this.#settings.redis, place)));
    if (found?.tenant !== tenant) throw fixedError("unknown_dead", "usual");
    return found;
  }
}

function viewOf(one: DeadRequest): DeadView {
  const { bucket, model, job, step } = one;
  return {
    id: encodeDeadId(one),
    object: "dead_request",
    model,
    reason: one.reason,
    runs: one.runs,
    set_aside_at: new Date(setAsideAt(one)).toISOString(),
    request_id: one.request === undefined ? null : encodeRequestId(one.request),
    job: job === undefined ? null : encodeJobId({ bucket, model, ...parseRequestName(job) }),
    sequence_id: step === undefined ? null : sequenceId(step.sequence),
    step: step?.number ?? null,
    bytes: one.bytes,
  };
}

/** The id as clients have sent it: beyond 2^53 in full, as a text. */
function sequenceId(encoded: string): number | string {
  const id = decodeCorrelationId(encoded);
  if (id.kind === "string") return id.value;
  return id.value <= Number.MAX_SAFE_INTEGER ? Number(id.value) : String(id.value);
}

/** Orders requests, the newest first. */
function compare(one: DeadPlace, other: DeadPlace): number {
  const [a, b] = [one, other].map(({ entry }) => entry.split("-").map(Number));
  for (const i of [0, 1]) {
    const apart = (b?.[i] ?? 0) - (a?.[i] ?? 0);
    if (apart !== 0) return apart;
  }
  if (one.bucket !== other.bucket) return one.bucket - other.bucket;
  return one.model < other.model ? -1 : Number(one.model > other.model);
}

function setAsideAt({ entry }: DeadPlace): number {
  return Number(entry.slice(0, entry.indexOf("-")));
}

/**
 * Makes `dead_<entry>.<bucket>.<model>`. The id says the place of the request; only its tenant can
 * read it.
 */
function encodeDeadId({ entry, bucket, model }: DeadPlace): string {
  return `dead_${encodeRequestId({ request: entry, bucket, model })}`;
}

/** @returns undefined for an id that no gateway made */
function decodeDeadId(id: string): DeadPlace | undefined {
  const [, entry, where] = ID.exec(id) ?? [];
  const address = entry === undefined ? undefined : decodeRequestId(`${entry}.${where}`, "");
  return address && { bucket: address.bucket, model: address.model, entry: address.request };
}
