/** Keeps clients of tenants from changing the settings of traces and of the log. */
import { fixedError } from "#shared/errors.js";
import type { Caller } from "../caller.js";

/**
 * Behind a proxy that names tenants, every request with a tenant is a client's.
 * @throws InferenceError `forbidden`
 */
export function needOperator({ tenant }: Caller, hasTenantHeader: boolean): void {
  if (hasTenantHeader && tenant !== "") throw fixedError("forbidden", "observing");
}
