/**
 * The one place that says whose request an HTTP request is. Each protocol asks here, once, and
 * hands the tenant on with the request; no later code decides it.
 */
import type { IncomingMessage } from "node:http";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";

/** Until requests carry API keys, all clients are one tenant. */
export function tenantOf(_incoming: IncomingMessage): string {
  return DEFAULT_TENANT;
}
