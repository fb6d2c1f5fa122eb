/** The limits of keys and tenants, as administrators set them, and the budgets that they make. */
import { z } from "zod";
import type { OwnerLimit } from "#shared/queue/admission/limits.js";
import type { Quota, QuotaField } from "#shared/queue/pieces/usage.js";
import { countedThings, type Budget, type OwnerRate } from "../../admission/budget.js";

/** Redis counts µs of a model's time exactly up to nine times as much. */
const MOST_OF_QUOTA = 1_000_000_000_000;

const ofKeys = {
  /** Admissions per second; 0 forbids all. */
  requests_per_second: z.number().min(0).max(100_000).optional(),
  /** Admissions that a rested owner may have at once; absent: those of a second, at least one. */
  burst: z.number().int().min(0).max(1_000_000).optional(),
  /** Tokens of generations, of prompts and answers; 0 forbids all. */
  tokens_per_minute: z.number().int().min(0).max(6_000_000).optional(),
  /** Generations that have not ended, queued ones included; 0 forbids all. */
  concurrent_streams: z.number().int().min(0).max(1_000_000).optional(),
  /** Event streams, WebSockets and long polls that are open at a gateway; 0 forbids all. */
  open_readers: z.number().int().min(0).max(1_000_000).optional(),
  /** What may be used in a UTC day or month; 0 forbids all. */
  quota: z
    .strictObject({
      requests: z.number().int().min(0).max(MOST_OF_QUOTA).optional(),
      tokens: z.number().int().min(0).max(MOST_OF_QUOTA).optional(),
      compute_ms: z.number().int().min(0).max(MOST_OF_QUOTA).optional(),
      period: z.enum(["day", "month"]),
    })
    .optional(),
};
const ofTenants = {
  ...ofKeys,
  /** Requests that wait or run; absent: as the deployment says. */
  queued_requests: z.number().int().min(0).max(1_000_000_000).optional(),
  /** Bytes of these requests. */
  queued_bytes: z.number().int().min(0).max(1_000_000_000_000).optional(),
  /** Live sequences of all models; 0 forbids all. */
  live_sequences: z.number().int().min(0).max(1_000_000_000).optional(),
  /** Bytes of bodies that a gateway receives and parses; absent: half of its memory for bodies. */
  body_bytes: z.number().int().min(0).max(1_000_000_000_000).optional(),
  // The things below are as many as the deployment says if they are absent.
  files: z.number().int().min(0).max(1_000_000_000).optional(),
  /** Bytes of all files. */
  file_bytes: z.number().int().min(0).max(1_000_000_000_000_000).optional(),
  /** Jobs that wait for their time, or for another attempt. */
  jobs: z.number().int().min(0).max(1_000_000_000).optional(),
  schedules: z.number().int().min(0).max(1_000_000).optional(),
  /** A page of a tenant's webhooks reads all of them. */
  webhooks: z.number().int().min(0).max(1_000).optional(),
  /** Batches that have not ended, which are fewer than the batches that are kept. */
  batches: z.number().int().min(0).max(10_000).optional(),
  /** Consumers of JetStream. */
  subscriptions: z.number().int().min(0).max(1_000_000).optional(),
};

/**
 * The limits that this version keeps, of a key and of a tenant. A limit of a later version says
 * nothing here.
 */
export const limitsRecord = { key: z.object(ofKeys).default({}), tenant: z.object(ofTenants).default({}) };
export type LimitedKind = keyof typeof limitsRecord;

/** The limits of a key, which tenants have, too. */
export type Limits = z.infer<(typeof limitsRecord)["key"]>;
export type TenantLimits = z.infer<(typeof limitsRecord)["tenant"]>;

/** The JSON Schema of the limits, as administrators give them. */
export function limitsSchema(of: LimitedKind) {
  const { $schema: _, default: __, ...schema } = z.toJSONSchema(limitsRecord[of], { io: "input" });
  return { ...schema, dependentRequired: { burst: ["requests_per_second"] }, additionalProperties: false };
}

export function limitNames(of: LimitedKind): string[] {
  return Object.keys(limitsRecord[of].unwrap().shape);
}

/** The lowest rate besides 0: one admission in about three hours. */
const LEAST_PER_SECOND = 0.000_1;

/** The longest time until an owner is rested, in s. Redis counts it in µs, exactly. */
const LONGEST_REST_S = 1_000_000_000;

/** @returns what is wrong with limits that an administrator gives; undefined if nothing is */
export function limitsFault(of: LimitedKind, given: object): string | undefined {
  const names = limitNames(of);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) return `'${unknown.slice(0, 64)}' is not supported: there are ${names.join(", ")}`;
  const { error, data } = limitsRecord[of].safeParse(given);
  if (error !== undefined) {
    const [issue] = error.issues;
    return `${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`;
  }
  const { requests_per_second: perSecond, burst } = data;
  if (burst !== undefined && perSecond === undefined) return "burst needs requests_per_second";
  if (perSecond !== undefined && perSecond > 0) {
    if (perSecond < LEAST_PER_SECOND) return `requests_per_second: must be 0, or at least ${LEAST_PER_SECOND}`;
    if (burst !== undefined && burst / perSecond > LONGEST_REST_S) return "burst: is too large for so low a rate";
  }
  return undefined;
}

/** The limits of keys of which a higher number always allows more. */
const plainLimits = ["tokens_per_minute", "concurrent_streams", "open_readers"] as const;

/** Whether an owner with these limits may take no more than one with the others. */
export function isWithin(limits: Limits, others: Limits): boolean {
  const isHigher = (name: (typeof plainLimits)[number]) => (limits[name] ?? Infinity) > (others[name] ?? Infinity);
  if (plainLimits.some(isHigher)) return false;
  if (!isQuotaWithin(limits.quota, others.quota)) return false;
  const [mine, most] = [limits, others].map((one) => rateOf("key", { id: "", limits: one }));
  if (most === undefined) return true;
  return mine !== undefined && mine.limit <= most.limit && mine.burst <= most.burst;
}

function isQuotaWithin(quota: Limits["quota"], other: Limits["quota"]): boolean {
  if (other === undefined) return true;
  // As much in a day may be more in a month, and as much in a month is never more in a day.
  if (quota === undefined || (quota.period === "day" && other.period === "month")) return false;
  const { requests = Infinity, tokens = Infinity, compute_ms: computeMs = Infinity } = other;
  return (
    (quota.requests ?? Infinity) <= requests &&
    (quota.tokens ?? Infinity) <= tokens &&
    (quota.compute_ms ?? Infinity) <= computeMs
  );
}

/** @returns undefined if the text is no JSON with limits of a tenant */
export function parseLimits(text: string): TenantLimits | undefined {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return undefined;
  }
  const areLimits = typeof given === "object" && given !== null && limitsFault("tenant", given) === undefined;
  return areLimits ? limitsRecord.tenant.parse(given) : undefined;
}

interface Limited {
  readonly id: string;
  readonly limits: Limits;
}

export interface LimitedTenant {
  readonly id: string;
  readonly limits: TenantLimits;
  readonly weight?: number | undefined;
}

/**
 * @param key undefined for requests that no key sends
 * @param tenant its limits in force, which may be the deployment's usual ones
 * @param usageKey id of the key or token as which usage counts; undefined if nobody counts it
 * @returns undefined if neither has a limit or a share, and nobody counts the usage
 */
export function budgetOf(
  key: Limited | undefined,
  tenant: LimitedTenant,
  usageKey: string | undefined,
): Budget | undefined {
  const rates = [rateOf("key", key), rateOf("tenant", tenant)].filter((rate) => rate !== undefined);
  const { generations = [], tokens: ofTenant = [], quotas = [], ...work } = workOf(tenant);
  const tokens = [...tokenRatesOf("key", key), ...ofTenant];
  const all = [...ownerLimitsOf("concurrent_streams", "k", key), ...generations];
  const readers = [...ownerLimitsOf("open_readers", "k", key), ...ownerLimitsOf("open_readers", "t", tenant)];
  const allQuotas = [...quotasOf("k", key), ...quotas];
  return orNone({
    rates,
    tokens: tokens.length === 0 ? undefined : tokens,
    bodyBytes: tenant.limits.body_bytes,
    ...work,
    generations: all.length === 0 ? undefined : all,
    readers: readers.length === 0 ? undefined : readers,
    quotas: allQuotas.length === 0 ? undefined : allQuotas,
    usageKey,
  });
}

/** @returns the limits that the budget keeps: of key and tenant the lower */
export function limitsIn(budget: Budget | undefined): TenantLimits {
  const { rates = [], tokens = [], generations = [], readers = [], quotas = [] } = budget ?? {};
  const { queued, liveSequences, bodyBytes, counts } = budget ?? {};
  const least = (all: readonly number[]) => (all.length === 0 ? undefined : Math.min(...all));
  return {
    requests_per_second: least(rates.map(({ limit }) => limit)),
    burst: least(rates.map(({ burst }) => burst)),
    tokens_per_minute: least(tokens.map(({ limit }) => limit)),
    concurrent_streams: least(generations.map(({ most }) => most)),
    open_readers: least(readers.map(({ most }) => most)),
    quota: quotaIn(quotas),
    queued_requests: queued?.requests,
    queued_bytes: queued?.bytes,
    live_sequences: liveSequences,
    body_bytes: bodyBytes,
    ...counts,
  };
}

/** The quota of the key, or else of the tenant. */
function quotaIn(quotas: readonly Quota[]): Limits["quota"] {
  const [first] = quotas;
  if (first === undefined) return undefined;
  const own = quotas.filter(({ name }) => name === first.name);
  const mostOf = (...fields: QuotaField[]) => own.find(({ field }) => fields.includes(field))?.most;
  const computeUs = mostOf("computeUs", "dayComputeUs");
  return {
    requests: mostOf("requests", "dayRequests"),
    tokens: mostOf("tokens", "dayTokens"),
    compute_ms: computeUs && computeUs / 1_000,
    period: first.field.startsWith("day") ? "day" : "month",
  };
}

/** The budget of work that no client sends: rates of requests are for clients alone. */
export function workBudgetOf(tenant: LimitedTenant, usageKey: string | undefined): Budget {
  return { rates: [], ...workOf(tenant), usageKey };
}

type WorkBudget = Pick<Budget, "weight" | "queued" | "liveSequences" | "generations" | "tokens" | "quotas" | "counts">;

function workOf(tenant: LimitedTenant): WorkBudget {
  const { weight, limits } = tenant;
  const { queued_requests: requests, queued_bytes: bytes } = limits;
  const hasQueued = requests !== undefined || bytes !== undefined;
  const generations = ownerLimitsOf("concurrent_streams", "t", tenant);
  const tokens = tokenRatesOf("tenant", tenant);
  const quotas = quotasOf("t", tenant);
  const counts = countedThings.flatMap((name) => (limits[name] === undefined ? [] : [[name, limits[name]] as const]));
  return {
    weight,
    queued: hasQueued ? { requests, bytes } : undefined,
    liveSequences: limits.live_sequences,
    generations: generations.length === 0 ? undefined : generations,
    tokens: tokens.length === 0 ? undefined : tokens,
    quotas: quotas.length === 0 ? undefined : quotas,
    counts: counts.length === 0 ? undefined : Object.fromEntries(counts),
  };
}

function ownerLimitsOf(
  limit: "concurrent_streams" | "open_readers",
  kind: "k" | "t",
  limited: Limited | undefined,
): OwnerLimit[] {
  const most = limited?.limits[limit];
  return limited === undefined || most === undefined ? [] : [{ name: `${kind}:${limited.id}`, most }];
}

function quotasOf(kind: "k" | "t", limited: Limited | undefined): Quota[] {
  const quota = limited?.limits.quota;
  if (limited === undefined || quota === undefined) return [];
  const { requests, tokens, compute_ms: computeMs, period } = quota;
  const isDay = period === "day";
  const each: [QuotaField, number | undefined][] = [
    [isDay ? "dayRequests" : "requests", requests],
    [isDay ? "dayTokens" : "tokens", tokens],
    [isDay ? "dayComputeUs" : "computeUs", computeMs && computeMs * 1_000],
  ];
  const name = `${kind}:${limited.id}`;
  return each.flatMap(([field, most]) => (most === undefined ? [] : [{ name, field, most }]));
}

function orNone(budget: Budget): Budget | undefined {
  const { rates, ...others } = budget;
  return rates.length === 0 && Object.values(others).every((one) => one === undefined) ? undefined : budget;
}

/** @returns the limits of a tenant that are in force */
export type LimitsOf = (id: string, record: TenantSays | undefined) => LimitedTenant;

/** What a record or a file says of a tenant. */
export interface TenantSays {
  readonly limits: TenantLimits;
  readonly weight?: number | undefined;
}

/**
 * @param record undefined if there is none
 * @param usual of the deployment, for a tenant that says nothing itself
 */
export function limitsInForce(id: string, record: TenantSays | undefined, usual: TenantLimits = {}): LimitedTenant {
  const own = record?.limits ?? {};
  return { id, limits: Object.keys(own).length === 0 ? usual : own, weight: record?.weight };
}

function rateOf(scope: OwnerRate["scope"], limited: Limited | undefined): OwnerRate | undefined {
  const perSecond = limited?.limits.requests_per_second;
  if (limited === undefined || perSecond === undefined) return undefined;
  const usual = { scope, counts: "requests", name: nameOf(scope, limited), limit: perSecond } as const;
  if (perSecond === 0) return { ...usual, periodUs: 1_000_000, burst: 0 };
  const { burst = Math.max(1, Math.floor(perSecond)) } = limited.limits;
  return { ...usual, periodUs: Math.round(1_000_000 / perSecond), burst };
}

/** A rested owner may use the tokens of a minute at once. */
function tokenRatesOf(scope: OwnerRate["scope"], limited: Limited | undefined): OwnerRate[] {
  const limit = limited?.limits.tokens_per_minute;
  if (limited === undefined || limit === undefined) return [];
  const usual = { scope, counts: "tokens", name: `${nameOf(scope, limited)}:tokens`, limit } as const;
  return [{ ...usual, periodUs: limit === 0 ? 1_000_000 : Math.round(60_000_000 / limit), burst: limit }];
}

function nameOf(scope: OwnerRate["scope"], { id }: Limited): string {
  return `${scope === "key" ? "k" : "t"}:${id}`;
}
