/**
 * Requests that were set aside, because a worker died each time that the request ran alone. The
 * tenant can read such a request for a week, and can retry the job if the request ran for a job.
 */
import { decodeCorrelationId } from "#shared/contract/sequence.js";
import { fixedError } from "#shared/errors.js";
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
import { encodeJobId } from "./view.js";

export interface DeadSettings {
  readonly redis: RedisClient;
  readonly buckets: number;
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

export interface DeadList {
  readonly dead: readonly DeadView[];
  readonly hasMore: boolean;
  /** The id behind which the next page begins; null if the page has looked at no request. */
  readonly last: string | null;
}

const ID = /^dead_(\d{1,15}-\d{1,15})\.(.+)$/;

export class DeadRequests {
  readonly #settings: DeadSettings;

  constructor(settings: DeadSettings) {
    this.#settings = settings;
  }

  /**
   * @param after the id behind which the page begins, even if Redis has forgotten that request
   * @throws InferenceError
   */
  async list(tenant: string, model: string | undefined, most: number, after: string | undefined): Promise<DeadList> {
    const { redis, buckets } = this.#settings;
    const from = after === undefined ? undefined : placeOf(after);
    const query = { tenant, from, most: most + 1 };
    const pages = await askRedis(() =>
      Promise.all(Array.from({ length: buckets }, (_, bucket) => listDeadRequests(redis, bucket, query))),
    );
    // Only requests before the place of the slowest bucket are final.
    const [end] = pages.flatMap(({ next }) => next ?? []).sort(compare);
    const isAsked = (one: DeadRequest) => model === undefined || one.model === model;
    const all = pages.flatMap(({ found }) => found.filter(isAsked)).sort(compare);
    const known = end === undefined ? all : all.filter((one) => compare(one, end) <= 0);
    const told = known.slice(0, most);
    const isCut = known.length > most;
    const last = isCut ? told.at(-1) : (end ?? told.at(-1));
    return {
      dead: told.map(viewOf),
      hasMore: isCut || end !== undefined,
      last: last === undefined ? null : encodeDeadId(last),
    };
  }

  /** @throws InferenceError `unknown_dead` or `unavailable` */
  async view(tenant: string, id: string): Promise<DeadView> {
    return viewOf(await this.#find(tenant, id));
  }

  /**
   * @returns the id of the job that the request ran
   * @throws InferenceError `dead_not_retryable`, `unknown_dead` or `unavailable`
   */
  async jobOf(tenant: string, id: string): Promise<string> {
    const { job } = viewOf(await this.#find(tenant, id));
    if (job === null) throw fixedError("dead_not_retryable", "usual");
    return job;
  }

  /** Forgets a request, because its job runs once more. */
  async forget(id: string): Promise<void> {
    await askRedis(() => removeDeadRequest(this.#settings.redis, placeOf(id)));
  }

  async #find(tenant: string, id: string): Promise<DeadRequest> {
    const place = placeOf(id);
    const found = await askRedis(() => readDeadRequest(this.#settings.redis, place));
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

/** @throws InferenceError `unknown_dead` for an id that no gateway made */
function placeOf(id: string): DeadPlace {
  const [, entry, where] = ID.exec(id) ?? [];
  const address = entry === undefined ? undefined : decodeRequestId(`${entry}.${where}`, "");
  if (address === undefined) throw fixedError("unknown_dead", "usual");
  return { bucket: address.bucket, model: address.model, entry: address.request };
}
