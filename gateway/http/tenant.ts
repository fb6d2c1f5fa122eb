/**
 * The one place that says whose request an HTTP request is. Each protocol asks here, once, and
 * hands the tenant on with the request; no later code decides it.
 */
import type { IncomingMessage } from "node:http";
import { DEFAULT_TENANT, isTenant } from "#shared/contract/tenant.js";
import { fixedError } from "#shared/errors.js";

/** @throws InferenceError where the request does not say whose it is, or not so that it counts */
export type TenantOf = (incoming: IncomingMessage) => string;

export const onlyTenant: TenantOf = () => DEFAULT_TENANT;

/**
 * Takes the tenant from a header that an authenticating proxy sets. A request without it has gone
 * around the proxy, so it is refused: as the default tenant's it would see what is not its own.
 * @param header its name; empty where all clients are one tenant
 */
export function tenantFrom(header: string): TenantOf {
  if (header === "") return onlyTenant;
  const name = header.toLowerCase();
  return ({ headers }) => {
    const value = headers[name];
    if (value === undefined) throw fixedError("forbidden", "noTenant");
    if (typeof value !== "string" || !isTenant(value)) throw fixedError("invalid_argument", "tenant");
    return value;
  };
}

/**
 * Reads `a=1,b=2`: the shares of tenants where requests have to wait.
 * @returns undefined for what cannot be read so
 */
export function parseWeights(text: string): ReadonlyMap<string, number> | undefined {
  const weights = new Map<string, number>();
  for (const part of text === "" ? [] : text.split(",")) {
    const [, tenant = "", weight = ""] = /^\s*([^=\s]+)\s*=\s*(\d{1,4})\s*$/.exec(part) ?? [];
    if (!isTenant(tenant) || Number(weight) < 1 || weights.has(tenant)) return undefined;
    weights.set(tenant, Number(weight));
  }
  return weights;
}
