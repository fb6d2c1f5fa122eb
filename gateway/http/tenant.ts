/**
 * The one place that decides the tenant of an HTTP request. Each protocol asks here, once, and
 * passes the tenant on with the request; no later code decides again.
 */
import type { IncomingMessage } from "node:http";
import { DEFAULT_TENANT, isTenant } from "#shared/contract/tenant.js";
import { fixedError } from "#shared/errors.js";

/** @throws InferenceError if the request names no tenant, or names the tenant in an invalid way */
export type TenantOf = (incoming: Pick<IncomingMessage, "headers">) => string;

export const onlyTenant: TenantOf = () => DEFAULT_TENANT;

/**
 * Takes the tenant from a header that an authenticating proxy sets. Refuses a request without this
 * header, because the request bypassed the proxy and would see data of the default tenant.
 * @param header name of the header; empty if all clients are one tenant
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
