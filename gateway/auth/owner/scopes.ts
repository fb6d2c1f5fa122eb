/** What a caller may do. Each endpoint declares the scope that it asks for. */
import { InferenceError } from "#shared/errors.js";

export const scopes = [
  /** Inference: steps, generations, chats. */
  "infer",
  /** Reading what the tenant has. */
  "read",
  /** Cancelling and detaching. */
  "cancel",
  /** Changing sequences: fork, rewind, end, import, export. */
  "sequences",
  /** Jobs, schedules, batches, webhooks and deliveries. */
  "jobs",
  "files",
  /** Credentials for NATS. */
  "subscribe",
  /** The tenant's keys and usage. */
  "admin",
  /** The fleet, and all tenants. */
  "operator",
] as const;

export type Scope = (typeof scopes)[number];

/** The scopes of a new key, unless its maker says otherwise. */
export const usualScopes: readonly Scope[] = ["infer", "read", "cancel", "jobs", "files", "sequences", "subscribe"];

export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}

/** @returns what is wrong with the list; undefined if nothing is */
export function scopesFault(names: readonly string[]): string | undefined {
  const unknown = names.find((name) => !isScope(name));
  if (unknown === undefined) return undefined;
  return `there is no scope '${unknown.slice(0, LONGEST_SHOWN)}': there are ${scopes.join(", ")}`;
}

/** Characters of a client's text that a message repeats. */
const LONGEST_SHOWN = 64;

/** An operator administers all tenants, so such a key needs no `admin`. */
export function hasScope(has: ReadonlySet<Scope>, scope: Scope): boolean {
  return has.has(scope) || (scope === "admin" && has.has("operator"));
}

/** Refuses a caller whose key does not have a scope. */
export class InsufficientScope extends InferenceError {
  readonly scope: Scope;
  readonly by: Refused | undefined;

  constructor(scope: Scope, by?: Refused) {
    super("insufficient_scope", `the API key lacks the scope '${scope}'`);
    this.scope = scope;
    this.by = by;
  }
}

/** A caller as the audit names it. */
interface Refused {
  readonly tenant?: string | undefined;
  readonly keyId?: string | undefined;
}

/**
 * @returns the owner
 * @throws InsufficientScope
 */
export function requireScope<O extends Refused & { readonly scopes: ReadonlySet<Scope> }>(owner: O, scope: Scope): O {
  if (!hasScope(owner.scopes, scope)) throw new InsufficientScope(scope, owner);
  return owner;
}
