/** A key as its administrators see it. */
import type { Limits } from "./owner/limits.js";
import type { KeyRecord } from "./owner/records.js";

export const keyStates = ["active", "expired", "revoked"] as const;
export type KeyState = (typeof keyStates)[number];

export interface KeyView {
  readonly id: string;
  readonly object: "key";
  readonly tenant: string;
  readonly name: string;
  readonly last4: string | null;
  readonly scopes: readonly string[];
  readonly models: readonly string[];
  readonly state: KeyState;
  readonly created_at: string | null;
  readonly created_by: string | null;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  /** A minute late at most; null for a key that was never used. */
  readonly last_used_at: string | null;
  readonly rotated_from: string | null;
  readonly limits: Limits;
  readonly source: "redis";
}

/**
 * @param now Redis ms
 * @param usedAt when the key was used last; absent: never
 */
export function keyView(key: KeyRecord, now: number, usedAt?: number): KeyView {
  return {
    id: key.id,
    object: "key",
    tenant: key.tenant,
    name: key.name,
    last4: key.last4 ?? null,
    scopes: key.scopes,
    models: key.models,
    state: stateOf(key, now),
    created_at: timeText(key.createdAt ?? null),
    created_by: key.createdBy ?? null,
    expires_at: timeText(key.expiresAt),
    revoked_at: timeText(key.revokedAt),
    last_used_at: timeText(usedAt ?? null),
    rotated_from: key.rotatedFrom ?? null,
    limits: key.limits,
    source: "redis",
  };
}

/** @param now Redis ms */
export function stateOf({ revokedAt, expiresAt }: KeyRecord, now: number): KeyState {
  if (revokedAt !== null) return "revoked";
  return expiresAt !== null && expiresAt <= now ? "expired" : "active";
}

/** @param ms since 1970 */
export function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
