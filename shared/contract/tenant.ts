/**
 * The tenant of a request. A tenant's name becomes part of Redis keys and NATS subjects, so a name
 * contains no character with a special meaning there.
 */

/** The tenant of every request if the operator has named no tenant header. */
export const DEFAULT_TENANT = "default";

export function isTenant(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(name);
}
