/**
 * How often a request's owner may be admitted, and the headers that say how much of that is left:
 * those of OpenAI (`x-ratelimit-…`), and those of the IETF's draft "RateLimit header fields for
 * HTTP" (version 11). Where key and tenant both have a rate, headers show the rate of which less is
 * left.
 */
import { errorKinds, InferenceError, type ErrorCode, type Limited } from "#shared/errors.js";
import type { OwnerLimit, QueuedLimits } from "#shared/queue/admission/limits.js";
import {
  shareOfRate,
  type ChargedRate,
  type Rate,
  type RateStanding,
  type TokenCharge,
} from "#shared/queue/pieces/rates.js";
import type { Quota, QuotaField, Usage } from "#shared/queue/pieces/usage.js";
import type { RedisClient } from "#shared/redis/connect.js";

/** A rate of an owner, as it was set. */
export interface OwnerRate extends Rate {
  readonly scope: "key" | "tenant";
  readonly counts: "requests" | "tokens";
  /** Requests per second, or tokens per minute. */
  readonly limit: number;
}

/**
 * Things of a tenant that have a limit by number: files, and their bytes; jobs that wait for their
 * time or another attempt; schedules; webhooks; batches that have not ended; subscriptions, which
 * are consumers of JetStream.
 */
export const countedThings = [
  "files",
  "file_bytes",
  "jobs",
  "schedules",
  "webhooks",
  "batches",
  "subscriptions",
] as const;
type CountedThing = (typeof countedThings)[number];

/** How many of these things a tenant may have. What is absent is as the deployment says. */
export type CountLimits = Readonly<Partial<Record<CountedThing, number | undefined>>>;

/** @returns for the refusal of a thing of which the tenant has as many as it may have */
export function tooManyOf(limit: CountedThing): { readonly limited: Limited } {
  return { limited: { limit, scope: "tenant" } };
}

/** What an owner may take. */
export interface Budget {
  /** The first that is in the way refuses. None for work that no client sends. */
  readonly rates: readonly OwnerRate[];
  /** Rates of tokens, which generations alone count in; absent: none. */
  readonly tokens?: readonly OwnerRate[] | undefined;
  /** The tenant's share while requests wait; absent: as the deployment says. */
  readonly weight?: number | undefined;
  /** What the tenant may have in the queue; absent: as the deployment says. */
  readonly queued?: QueuedLimits | undefined;
  /** How many live sequences of all models the tenant may have; absent: no limit. */
  readonly liveSequences?: number | undefined;
  /** Most bytes of the tenant's bodies under way at a gateway; absent: as the gateway says. */
  readonly bodyBytes?: number | undefined;
  /** How many generations that have not ended key and tenant may have; absent: no limit. */
  readonly generations?: readonly OwnerLimit[] | undefined;
  /** How many readers key and tenant may have open at a gateway; absent: no limit. */
  readonly readers?: readonly OwnerLimit[] | undefined;
  /** Quotas of key and tenant; absent: none. */
  readonly quotas?: readonly Quota[] | undefined;
  /** The id of the key as which usage counts; absent: nobody counts it. */
  readonly usageKey?: string | undefined;
  /** How many things the tenant may have; absent: as the deployment says. */
  readonly counts?: CountLimits | undefined;
}

interface Place {
  readonly redis: Pick<RedisClient, "isCluster">;
  readonly buckets: number;
}

export type RateHeaders = Readonly<Record<string, string>>;

/** The buckets that each owner's requests have not gone to in this round. */
const rounds = new WeakMap<Budget, number[]>();

/** The budget of a request's owner, and how it stood when the request was admitted or refused. */
export class RequestBudget {
  readonly #budget: Budget;
  /** The request of which this is a further part. */
  readonly #whole: RequestBudget | undefined;
  #charge: TokenCharge | undefined;
  /** What all parts of the request cost. */
  #cost = 0;
  #headers: RateHeaders | undefined;
  #tell: ((headers: RateHeaders) => void) | undefined;
  #refusedBy: ((error: InferenceError) => void) | undefined;

  constructor(budget: Budget, whole?: RequestBudget) {
    this.#budget = budget;
    this.#whole = whole;
  }

  /**
   * The bucket of a request that may lie in any. In a Redis Cluster each bucket has a share of the
   * owner's rates, so the owner's requests go round: by chance, a burst would find some shares used
   * up while others are whole. Each round has another order, because a client that sends two kinds
   * of requests by turns would else send each kind to half of the buckets.
   * @param random a bucket that was drawn at random
   */
  nextBucket(random: number, buckets: number): number {
    if (buckets === 1) return random;
    const known = rounds.get(this.#budget) ?? [];
    const left = known.length > 0 ? known : Array.from({ length: buckets }, (_, bucket) => bucket);
    const [bucket = random] = left.splice(random % left.length, 1);
    rounds.set(this.#budget, left);
    return bucket;
  }

  /**
   * @param charge tells what a generation costs; absent for any other request
   * @returns the rates that the request counts in
   * @throws InferenceError `invalid_argument` for a generation that costs more than its owner ever
   *   has
   */
  ratesOf(charge?: () => TokenCharge): readonly ChargedRate[] {
    const { rates, tokens } = this.#budget;
    if (charge === undefined || tokens === undefined) return rates;
    // A request is made anew for another version of its model, and costs the same.
    const asked = this.#charge ?? charge();
    const whole = this.#whole ?? this;
    if (this.#charge === undefined) whole.#cost += asked.cost;
    this.#charge = asked;
    const cost = whole.#cost;
    for (const { limit, scope } of tokens) {
      if (limit === 0 || cost <= limit) continue;
      const message = `the prompt and max_tokens come to ${cost} tokens, and ${whose(scope)} has ${limit}`;
      throw new InferenceError("invalid_argument", `${message} (tokens_per_minute)`);
    }
    return [...rates, ...tokens.map((rate) => ({ ...rate, charge: asked }))];
  }

  /**
   * Looks whether a generation may be admitted at any time, whose time has yet to come.
   * @throws InferenceError
   */
  checkLater(charge: () => TokenCharge): void {
    this.ratesOf(charge);
    const none = this.#budget.tokens?.find(({ limit }) => limit === 0);
    if (none !== undefined) throw this.refused(none.name, none.periodUs);
  }

  /** The same for a further part of a request, which as a whole counts once. */
  forPart(): RequestBudget {
    return new RequestBudget({ ...this.#budget, rates: [] }, this);
  }

  get weight(): Budget["weight"] {
    return this.#budget.weight;
  }

  get queued(): Budget["queued"] {
    return this.#budget.queued;
  }

  get liveSequences(): Budget["liveSequences"] {
    return this.#budget.liveSequences;
  }

  get bodyBytes(): Budget["bodyBytes"] {
    return this.#budget.bodyBytes;
  }

  get generations(): Budget["generations"] {
    return this.#budget.generations;
  }

  get quotas(): Budget["quotas"] {
    return this.#budget.quotas;
  }

  /** Undefined if nobody counts the usage. */
  get usage(): Usage | undefined {
    const { usageKey: key } = this.#budget;
    return key === undefined ? undefined : { key, counts: this.#whole === undefined ? 1 : 0 };
  }

  get counts(): Budget["counts"] {
    return this.#budget.counts;
  }

  /** @returns the refusal of a request whose owner has used up a quota */
  usedUp(name: string, field: QuotaField): InferenceError {
    const period = field.startsWith("day") ? "day" : "month";
    const counted = quotaWords[field];
    const message = `the quota of ${counted} for this ${period} is used up`;
    return this.#refusal("insufficient_quota", message, { limit: "quota", scope: scopeOf(name) });
  }

  /** @returns the refusal of a generation whose owner has as many as it may have */
  oneTooMany(name: string): InferenceError {
    const most = this.#budget.generations?.find((one) => one.name === name)?.most ?? 0;
    const scope = scopeOf(name);
    const message = `${whose(scope)} may have ${most} generations at a time (concurrent_streams)`;
    return this.#refusal("stream_limit", message, { limit: "concurrent_streams", scope });
  }

  /** @returns the refusal of a request that begins a sequence more than its tenant may have */
  oneSequenceTooMany(): InferenceError {
    return this.#refused(tooManySequences(this.#budget.liveSequences));
  }

  /** The rates of requests as a bucket counts them: in a Redis Cluster it has a share of each. */
  ratesIn({ redis, buckets }: Place, bucket: number): readonly Rate[] {
    const { rates } = this.#budget;
    return redis.isCluster ? rates.map((rate) => shareOfRate(rate, bucket, buckets)) : rates;
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

  /** @param standings undefined if an earlier copy of the call was answered */
  admitted(standings: readonly RateStanding[] | undefined): void {
    const known = (standings ?? []).flatMap((standing) => {
      const rate = this.#rateOf(standing.name);
      return rate === undefined ? [] : [{ rate, standing }];
    });
    if (known.length > 0) this.#show(headersOf(known));
  }

  /**
   * @param waitUs until the rate has room again
   * @returns the refusal
   */
  refused(name: string, waitUs: number): InferenceError {
    const rate = this.#rateOf(name);
    if (rate === undefined) throw new TypeError(`the request has no rate ${name}`);
    const { scope, limit, burst, periodUs, counts } = rate;
    const cost = counts === "tokens" ? Math.min(this.#charge?.cost ?? 1, burst) : 1;
    const remaining = Math.max(0, Math.floor(cost - waitUs / periodUs));
    const resetUs = waitUs + Math.max(0, burst - cost) * periodUs;
    this.#show(headersOf([{ rate, standing: { name, remaining, resetUs } }]));
    const waitMs = Math.ceil(waitUs / 1_000);
    const [rateText, limitName] =
      counts === "tokens"
        ? [`tokens per minute: limit ${limit}`, "tokens_per_minute"]
        : [`requests per second: limit ${limit}, burst ${burst}`, "requests_per_second"];
    const usual = errorKinds.rate_limit_exceeded.texts.usual;
    const message = `${usual} ${rateText}. Please try again in ${durationText(waitMs)}.`;
    return this.#refusal("rate_limit_exceeded", message, { limit: limitName, scope, waitMs });
  }

  #refusal(code: ErrorCode, message: string, limited: Limited): InferenceError {
    return this.#refused(new InferenceError(code, message, { limited }));
  }

  #refused(error: InferenceError): InferenceError {
    (this.#whole ?? this).#refusedBy?.(error);
    return error;
  }

  #rateOf(name: string): OwnerRate | undefined {
    const { rates, tokens = [] } = this.#budget;
    return [...rates, ...tokens].find((rate) => rate.name === name);
  }

  #show(headers: RateHeaders): void {
    if (this.#whole !== undefined) return this.#whole.#show({ ...this.#whole.headers, ...headers });
    this.#headers = headers;
    this.#tell?.(headers);
  }
}

/** @returns the refusal of a sequence whose tenant has as many as it may have */
export function tooManySequences(most = 0): InferenceError {
  const message = `the tenant may have ${most} live sequences (live_sequences)`;
  return new InferenceError("sequence_limit", message, { limited: { limit: "live_sequences", scope: "tenant" } });
}

/** @returns the refusal of a reader whose owner has as many open as it may have */
export function oneReaderTooMany({ name, most }: OwnerLimit): InferenceError {
  const scope = scopeOf(name);
  const message = `${whose(scope)} may have ${most} open readers at a gateway (open_readers)`;
  return new InferenceError("stream_limit", message, { limited: { limit: "open_readers", scope } });
}

const quotaWords: Readonly<Record<QuotaField, string>> = {
  requests: "requests",
  dayRequests: "requests",
  tokens: "tokens",
  dayTokens: "tokens",
  computeUs: "compute_ms",
  dayComputeUs: "compute_ms",
};

/** @param name of an owner, as rates have it */
function scopeOf(name: string): OwnerRate["scope"] {
  return name.startsWith("k:") ? "key" : "tenant";
}

function whose(scope: OwnerRate["scope"]): string {
  return scope === "key" ? "the API key" : "the tenant";
}

interface Stood {
  readonly rate: OwnerRate;
  readonly standing: RateStanding;
}

/** @param all a rate of requests, a rate of tokens, or both */
function headersOf(all: readonly Stood[]): RateHeaders {
  const headers: Record<string, string> = {};
  const add = (name: string, text: string) => {
    const before = headers[name];
    headers[name] = before === undefined ? text : `${before}, ${text}`;
  };
  const seconds = (us: number): number => Math.ceil(us / 1_000_000);
  for (const { rate, standing } of all) {
    const { counts, limit, periodUs, burst } = rate;
    const { remaining, resetUs } = standing;
    add(`x-ratelimit-limit-${counts}`, String(counts === "tokens" ? limit : Math.round(limit * 60)));
    add(`x-ratelimit-remaining-${counts}`, String(remaining));
    add(`x-ratelimit-reset-${counts}`, durationText(Math.ceil(resetUs / 1_000)));
    add("ratelimit-policy", `"${counts}";q=${burst};w=${Math.max(1, seconds(burst * periodUs))}`);
    add("ratelimit", `"${counts}";r=${remaining};t=${seconds(resetUs)}`);
  }
  return headers;
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
