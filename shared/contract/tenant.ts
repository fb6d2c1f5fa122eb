/**
 * Whose a request is. A tenant's name becomes part of Redis keys and NATS subjects, so it holds
 * nothing that has a meaning there.
 */

/** The tenant of every request where the operator has named no header that says it. */
export const DEFAULT_TENANT = "default";

export function isTenant(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(name);
}
