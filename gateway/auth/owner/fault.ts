/** Whether a key or token is good: the same answer for a new request and for an open stream. */
import { AuthFailure } from "./auth-failure.js";
import { errorKinds } from "#shared/errors.js";
import type { KnownKey } from "./records.js";
import { isTokenId } from "./owner.js";

const texts = {
  revoked: errorKinds.revoked_api_key.texts.usual,
  expired: errorKinds.expired_api_key.texts.usual,
  suspended: errorKinds.tenant_suspended.texts.usual,
  tokenExpired: errorKinds.invalid_token.texts.expired,
};

/**
 * @param now Redis ms
 * @returns why the key is good no longer; undefined while it is
 */
export function faultOf({ key, tenant }: KnownKey, now: number): AuthFailure | undefined {
  if (key.revokedAt !== null) return new AuthFailure("revoked", "revoked_api_key", texts.revoked, key);
  if (key.expiresAt !== null && key.expiresAt <= now) {
    if (isTokenId(key.id)) return new AuthFailure("token", "invalid_token", texts.tokenExpired, key);
    return new AuthFailure("expired", "expired_api_key", texts.expired, key);
  }
  if (tenant?.state !== "suspended") return undefined;
  return new AuthFailure("suspended", "tenant_suspended", texts.suspended, key);
}
