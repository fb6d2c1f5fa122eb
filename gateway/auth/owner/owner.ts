/**
 * Whose a request is, and what the request may do. A door gets an owner from the authenticator, and
 * makes the caller of every service from it.
 */
import type { Budget } from "../../admission/budget.js";
import type { KeyRecord } from "./records.js";
import { scopes, type Scope } from "./scopes.js";

export interface Owner {
  readonly tenant: string;
  /** Of the key, or of a token's subject; undefined if the deployment asks for no keys. */
  readonly keyId: string | undefined;
  /** Absent if the request has no key. */
  readonly key?: KeyRecord;
  /** Under which what the request opens is watched; absent: the key's id. */
  readonly openAs?: string;
  /** When the request's token or key expires, in Redis ms; absent: never. */
  readonly expiresAt?: number | null;
  /** Absent if neither key nor tenant has a limit. */
  readonly budget?: Budget | undefined;
  readonly scopes: ReadonlySet<Scope>;
  /** The globs of the key, for work that outlives the key's request. */
  readonly models: readonly string[];
  /** Whether the owner may use the model of this name. No other model exists for the owner. */
  readonly mayUse: (model: string) => boolean;
}

/** How the ids of tokens' subjects begin. */
export const TOKEN_ID_PREFIX = "jwt:";

/** Whether the id stands for the subject of a token, and not for an API key. */
export function isTokenId(id: string): boolean {
  return id.startsWith(TOKEN_ID_PREFIX);
}

const allScopes: ReadonlySet<Scope> = new Set(scopes);

/** The owner of requests if the deployment asks for no keys. */
export function anyOwner(tenant: string): Owner {
  return { tenant, keyId: undefined, scopes: allScopes, models: ["*"], mayUse: () => true };
}
