/** What the administration of keys and tenants works on, and whether this gateway has it. */
import { fixedError } from "#shared/errors.js";
import type { Audit } from "../auth/audit.js";
import type { Keys } from "../auth/keys.js";
import type { TenantRecords } from "../auth/tenant-records.js";
import { InsufficientScope } from "../auth/owner/scopes.js";
import type { Caller } from "./caller.js";
import type { KeptKeys } from "./kept-keys.js";

export interface Administration {
  readonly keys: Keys;
  readonly kept: KeptKeys;
  readonly tenants: TenantRecords;
  /** Whether clients may make, change and remove keys and tenants (`BATON_ADMIN_API`). */
  readonly mayChange: boolean;
  readonly audit: Audit;
  /** Whether a file has a key of the tenant that is not revoked. */
  readonly hasInFile: (tenant: string) => boolean;
}

/**
 * Refuses every client of a deployment without keys: there, nobody is known, and a key that anybody
 * makes for himself would outlive the day on which the operator asks for keys.
 * @throws InferenceError `unsupported`
 */
export function toRead(administration: Administration | undefined): Administration {
  if (administration === undefined) throw fixedError("unsupported", "noKeys");
  return administration;
}

/** @throws InferenceError `unsupported` */
export function toChange(administration: Administration | undefined): Administration {
  const found = toRead(administration);
  if (!found.mayChange) throw fixedError("unsupported", "administrationOff");
  return found;
}

/** @throws InferenceError `insufficient_scope` for another tenant's things, except for operators */
export function needTenant(caller: Caller, tenant: string): void {
  if (!caller.may("operator") && tenant !== caller.tenant) throw new InsufficientScope("operator");
}
