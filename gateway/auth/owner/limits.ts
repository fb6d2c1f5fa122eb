/** The limits of keys and tenants, as administrators set them, and the budgets that they make. */
import { z } from "zod";
import type { OwnerLimit } from "#shared/queue/admission/limits.js";
import type { Budget, OwnerRate } from "../../admission/budget.js";

const ofKeys = {
  /** Admissions per second; 0 forbids all. */
  requests_per_second: z.number().min(0).max(100_000).optional(),
  /** Admissions that a rested owner may have at once; absent: those of a second, at least one. */
  burst: z.number().int().min(0).max(1_000_000).optional(),
  /** Tokens of generations, of prompts and answers; 0 forbids all. */
  tokens_per_minute: z.number().int().min(0).max(6_000_000).optional(),
  /** Generations that have not ended, queued ones included; 0 forbids all. */
  concurrent_streams: z.number().int().min(0).max(1_000_000).optional(),
};
const ofTenants = {
  ...ofKeys,
  /** Requests that wait or run; absent: as the deployment says. */
  queued_requests: z.number().int().min(0).max(1_000_000_000).optional(),
  /** Bytes of these requests. */
  queued_bytes: z.number().int().min(0).max(1_000_000_000_000).optional(),
  /** Bytes of bodies that a gateway receives and parses; absent: half of its memory for bodies. */
  body_bytes: z.number().int().min(0).max(1_000_000_000_000).optional(),
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

/** Whether an owner with these limits may take no more than one with the others. */
export function isWithin(limits: Limits, others: Limits): boolean {
  const { concurrent_streams: streams = Infinity } = limits;
  if (streams > (others.concurrent_streams ?? Infinity)) return false;
  if ((limits.tokens_per_minute ?? Infinity) > (others.tokens_per_minute ?? Infinity)) return false;
  const [mine, most] = [limits, others].map((one) => rateOf("key", { id: "", limits: one }));
  if (most === undefined) return true;
  return mine !== undefined && mine.limit <= most.limit && mine.burst <= most.burst;
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
 * @returns undefined if neither has a limit or a share
 */
export function budgetOf(key: Limited | undefined, tenant: LimitedTenant): Budget | undefined {
  const rates = [rateOf("key", key), rateOf("tenant", tenant)].filter((rate) => rate !== undefined);
  const { generations = [], tokens: ofTenant = [], ...work } = workOf(tenant);
  const tokens = [...tokenRatesOf("key", key), ...ofTenant];
  const ofKey = key === undefined ? [] : generationsOf("k", key);
  const all = [...ofKey, ...generations];
  return orNone({
    rates,
    tokens: tokens.length === 0 ? undefined : tokens,
    bodyBytes: tenant.limits.body_bytes,
    ...work,
    generations: all.length === 0 ? undefined : all,
  });
}

/** The budget of work that no client sends: rates of requests are for clients alone. */
export function workBudgetOf(tenant: LimitedTenant): Budget | undefined {
  return orNone({ rates: [], ...workOf(tenant) });
}

function workOf(tenant: LimitedTenant): Pick<Budget, "weight" | "queued" | "generations" | "tokens"> {
  const { weight, limits } = tenant;
  const { queued_requests: requests, queued_bytes: bytes } = limits;
  const hasQueued = requests !== undefined || bytes !== undefined;
  const [generations, tokens] = [generationsOf("t", tenant), tokenRatesOf("tenant", tenant)];
  return {
    weight,
    queued: hasQueued ? { requests, bytes } : undefined,
    generations: generations.length === 0 ? undefined : generations,
    tokens: tokens.length === 0 ? undefined : tokens,
  };
}

function generationsOf(kind: "k" | "t", { id, limits }: Limited): OwnerLimit[] {
  const { concurrent_streams: most } = limits;
  return most === undefined ? [] : [{ name: `${kind}:${id}`, most }];
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
