/**
 * How often a request's owner may be admitted, and the headers that say how much of that is left:
 * those of OpenAI (`x-ratelimit-…`), and those of the IETF's draft "RateLimit header fields for
 * HTTP" (version 11). Where key and tenant both have a rate, headers show the rate of which less is
 * left.
 */
import { errorKinds, InferenceError, type ErrorCode, type Limited } from "#shared/errors.js";
import type { OwnerLimit, QueuedLimits } from "#shared/queue/admission/limits.js";
import { shareOfRate, type Rate, type RateStanding } from "#shared/queue/pieces/rates.js";
import type { RedisClient } from "#shared/redis/connect.js";

/** A rate of an owner, as it was set. */
export interface OwnerRate extends Rate {
  readonly scope: "key" | "tenant";
  readonly perSecond: number;
}

/** What an owner may take. */
export interface Budget {
  /** The first that is in the way refuses. None for work that no client sends. */
  readonly rates: readonly OwnerRate[];
  /** The tenant's share while requests wait; absent: as the deployment says. */
  readonly weight?: number | undefined;
  /** What the tenant may have in the queue; absent: as the deployment says. */
  readonly queued?: QueuedLimits | undefined;
  /** How many generations that have not ended key and tenant may have; absent: no limit. */
  readonly generations?: readonly OwnerLimit[] | undefined;
}

interface Place {
  readonly redis: Pick<RedisClient, "isCluster">;
  readonly buckets: number;
}

export type RateHeaders = Readonly<Record<string, string>>;

/** The budget of a request's owner, and how it stood when the request was admitted or refused. */
export class RequestBudget {
  readonly #budget: Budget;
  #headers: RateHeaders | undefined;
  #tell: ((headers: RateHeaders) => void) | undefined;
  #refusedBy: ((error: InferenceError) => void) | undefined;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  get rates(): readonly Rate[] {
    return this.#budget.rates;
  }

  /** The same for a further part of a request, which as a whole counts once. */
  forPart(): RequestBudget {
    return new RequestBudget({ ...this.#budget, rates: [] });
  }

  get weight(): Budget["weight"] {
    return this.#budget.weight;
  }

  get queued(): Budget["queued"] {
    return this.#budget.queued;
  }

  get generations(): Budget["generations"] {
    return this.#budget.generations;
  }

  /** @returns the refusal of a generation whose owner has as many as it may have */
  oneTooMany(name: string): InferenceError {
    const most = this.#budget.generations?.find((one) => one.name === name)?.most ?? 0;
    const scope = name.startsWith("k:") ? "key" : "tenant";
    const whose = scope === "key" ? "the API key" : "the tenant";
    const message = `${whose} may have ${most} generations at a time (concurrent_streams)`;
    return this.#refusal("stream_limit", message, { limit: "concurrent_streams", scope });
  }

  /** The rates as a bucket counts them, which in a Redis Cluster has a share of each. */
  ratesIn({ redis, buckets }: Place, bucket: number): readonly Rate[] {
    return redis.isCluster ? this.rates.map((rate) => shareOfRate(rate, bucket, buckets)) : this.rates;
  }

  /** Undefined before Redis has answered. */
  get headers(): RateHeaders | undefined {
    return this.#headers;
  }

  /** @param tell called with the headers when they are known, before the answer begins */
  onHeaders(tell: (headers: RateHeaders) => void): void {
    this.#tell = tell;
  }

  /** @param note called with each refusal by a limit of the owner */
  onRefusal(note: (error: InferenceError) => void): void {
    this.#refusedBy = note;
  }

  /** @param standing undefined if an earlier copy of the call was answered */
  admitted(standing: RateStanding | undefined): void {
    const rate = standing && this.#rateOf(standing.name);
    if (rate !== undefined && standing !== undefined) this.#show(headersOf(rate, standing));
  }

  /**
   * @param waitUs until the rate has room again
   * @returns the refusal
   */
  refused(name: string, waitUs: number): InferenceError {
    const rate = this.#rateOf(name);
    if (rate === undefined) throw new TypeError(`the request has no rate ${name}`);
    const resetUs = waitUs + Math.max(0, rate.burst - 1) * rate.periodUs;
    this.#show(headersOf(rate, { name, remaining: 0, resetUs }));
    const { scope, perSecond, burst } = rate;
    const waitMs = Math.ceil(waitUs / 1_000);
    const message =
      `${errorKinds.rate_limit_exceeded.texts.usual} requests per second: limit ${perSecond}, burst ${burst}. ` +
      `Please try again in ${durationText(waitMs)}.`;
    return this.#refusal("rate_limit_exceeded", message, { limit: "requests_per_second", scope, waitMs });
  }

  #refusal(code: ErrorCode, message: string, limited: Limited): InferenceError {
    const error = new InferenceError(code, message, { limited });
    this.#refusedBy?.(error);
    return error;
  }

  #rateOf(name: string): OwnerRate | undefined {
    return this.#budget.rates.find((rate) => rate.name === name);
  }

  #show(headers: RateHeaders): void {
    this.#headers = headers;
    this.#tell?.(headers);
  }
}

function headersOf({ perSecond, periodUs, burst }: OwnerRate, { remaining, resetUs }: RateStanding): RateHeaders {
  const seconds = (us: number): number => Math.ceil(us / 1_000_000);
  return {
    "x-ratelimit-limit-requests": String(Math.round(perSecond * 60)),
    "x-ratelimit-remaining-requests": String(remaining),
    "x-ratelimit-reset-requests": durationText(Math.ceil(resetUs / 1_000)),
    "ratelimit-policy": `"requests";q=${burst};w=${Math.max(1, seconds(burst * periodUs))}`,
    ratelimit: `"requests";r=${remaining};t=${seconds(resetUs)}`,
  };
}

/** A duration as OpenAI writes it: `12ms`, `1s`, `1.5s`, `6m0s`. @param ms a whole number */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${ms}ms`;
  const seconds = (ms % 60_000) / 1_000;
  const minutes = Math.floor(ms / 60_000);
  if (minutes === 0) return `${seconds}s`;
  const hours = Math.floor(minutes / 60);
  return hours === 0 ? `${minutes}m${seconds}s` : `${hours}h${minutes % 60}m${seconds}s`;
}
