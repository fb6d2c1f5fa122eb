/** The limits of keys and tenants, as administrators set them, and the budgets that they make. */
import { z } from "zod";
import type { Budget, OwnerRate } from "../../admission/budget.js";

/** The limits that this version keeps. A limit of a later version says nothing here. */
export const limitsRecord = z
  .object({
    /** Admissions per second; 0 forbids all. */
    requests_per_second: z.number().min(0).max(100_000).optional(),
    /** Admissions that a rested owner may have at once; absent: those of a second, at least one. */
    burst: z.number().int().min(0).max(1_000_000).optional(),
  })
  .default({});

export type Limits = z.infer<typeof limitsRecord>;

export const limitNames = Object.keys(limitsRecord.unwrap().shape);

/** The lowest rate besides 0: one admission in about three hours. */
const LEAST_PER_SECOND = 0.000_1;

/** @returns what is wrong with limits that an administrator gives; undefined if nothing is */
export function limitsFault(given: object): string | undefined {
  const unknown = Object.keys(given).find((name) => !limitNames.includes(name));
  if (unknown !== undefined) return `'${unknown.slice(0, 64)}' is not supported: there are ${limitNames.join(", ")}`;
  const { error, data } = limitsRecord.safeParse(given);
  if (error !== undefined) {
    const [issue] = error.issues;
    return `${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`;
  }
  const { requests_per_second: perSecond, burst } = data;
  if (burst !== undefined && perSecond === undefined) return "burst needs requests_per_second";
  if (perSecond !== undefined && perSecond > 0 && perSecond < LEAST_PER_SECOND) {
    return `requests_per_second: must be 0, or at least ${LEAST_PER_SECOND}`;
  }
  return undefined;
}

/** Whether an owner with these limits may take no more than one with the others. */
export function isWithin(limits: Limits, others: Limits): boolean {
  const [mine, most] = [limits, others].map((one) => rateOf("key", { id: "", limits: one }));
  if (most === undefined) return true;
  return mine !== undefined && mine.perSecond <= most.perSecond && mine.burst <= most.burst;
}

interface Limited {
  readonly id: string;
  readonly limits: Limits;
}

/**
 * @param tenant its limits in force, which may be the deployment's usual ones
 * @returns undefined if neither has a limit
 */
export function budgetOf(key: Limited | undefined, tenant: Limited): Budget | undefined {
  const rates = [rateOf("key", key), rateOf("tenant", tenant)].filter((rate) => rate !== undefined);
  return rates.length === 0 ? undefined : { rates };
}

/**
 * @param record undefined if there is none
 * @param usual of the deployment, for a tenant that says nothing itself
 */
export function limitsInForce(id: string, record: { limits: Limits } | undefined, usual: Limits = {}): Limited {
  const own = record?.limits ?? {};
  return { id, limits: Object.keys(own).length === 0 ? usual : own };
}

function rateOf(scope: OwnerRate["scope"], limited: Limited | undefined): OwnerRate | undefined {
  const perSecond = limited?.limits.requests_per_second;
  if (limited === undefined || perSecond === undefined) return undefined;
  const name = `${scope === "key" ? "k" : "t"}:${limited.id}`;
  if (perSecond === 0) return { scope, name, perSecond, periodUs: 1_000_000, burst: 0 };
  const { burst = Math.max(1, Math.floor(perSecond)) } = limited.limits;
  return { scope, name, perSecond, periodUs: Math.round(1_000_000 / perSecond), burst };
}
