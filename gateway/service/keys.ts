/**
 * The operations on API keys. A caller with the scope `admin` sees and makes keys of its own
 * tenant, an operator all keys.
 */
import { fixedError, InferenceError } from "#shared/errors.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import type { AuditDetails } from "../auth/audit.js";
import { LONGEST_OVERLAP_MS, revoked, type MadeKey } from "../auth/keys.js";
import { keyView, stateOf, type KeyState, type KeyView } from "../auth/key-view.js";
import { limitsIn, type Limits, type TenantLimits } from "../auth/owner/limits.js";
import type { KeyRecord } from "../auth/owner/records.js";
import { usualScopes, type Scope } from "../auth/owner/scopes.js";
import { needTenant, toChange, toRead, type Administration } from "./administration.js";
import type { Caller } from "./caller.js";
import { unknownPlace, type Page, type PageTerms } from "./page.js";
import { usedBy, type Used, type UsedPlace } from "./used/used.js";

/** Members of a key that its administrators choose. */
export interface GivenKey {
  readonly name?: string | undefined;
  readonly scopes?: readonly Scope[] | undefined;
  readonly models?: readonly string[] | undefined;
  readonly limits?: Limits | undefined;
  /** In ms since 1970; null: never. */
  readonly expiresAt?: number | null | undefined;
}

export interface KeyFilters {
  readonly tenant: string | undefined;
  readonly state: KeyState | undefined;
}

/** The only view that shows the key. */
export interface ShownKey {
  readonly view: KeyView & { readonly key: string };
  /** Whether an earlier call under the same Idempotency-Key has made the key. */
  readonly isReplayed: boolean;
}

export interface WhoAmI {
  readonly tenant: string;
  readonly auth: "off" | "keys" | "jwt";
  readonly key: KeyView | null;
  /** Those in force: the lower of key and tenant; a tenant without limits has the usual ones. */
  readonly limits: TenantLimits;
  readonly used: Used;
}

export class KeyService {
  readonly #administration: Administration | undefined;
  readonly #place: UsedPlace;

  /** @param administration undefined if the deployment asks for no keys */
  constructor(administration: Administration | undefined, place: UsedPlace) {
    this.#administration = administration;
    this.#place = place;
  }

  /** @throws InferenceError `unavailable` */
  async whoami(caller: Caller): Promise<WhoAmI> {
    const { tenant, key, keyId, budget } = caller;
    const standing = { limits: limitsIn(budget), used: await usedBy(this.#place, caller) };
    // This request uses the key, which the gateway has judged.
    if (key !== undefined) return { tenant, auth: "keys", key: viewOfActive(key, Date.now()), ...standing };
    return { tenant, auth: keyId === undefined ? "off" : "jwt", key: null, ...standing };
  }

  /**
   * Lists the keys, the newest first.
   * @throws InferenceError
   */
  async list(caller: Caller, { limit, after, tenant, state }: PageTerms & KeyFilters): Promise<Page<KeyView>> {
    const { keys } = toRead(this.#administration);
    if (tenant !== undefined) needTenant(caller, tenant);
    const now = await askRedis(() => keys.now());
    const query = {
      tenant: tenant ?? (caller.may("operator") ? undefined : caller.tenant),
      limit,
      after,
      isWanted: (key: KeyRecord) => state === undefined || stateOf(key, now) === state,
    };
    const found = await askRedis(() => keys.page(query));
    if (found === undefined) throw unknownPlace();
    const data = await askRedis(() => keys.views(found.slice(0, limit), now));
    return { data, hasMore: found.length > limit };
  }

  /** @throws InferenceError `unknown_key` or `unavailable` */
  async view(caller: Caller, id: string): Promise<KeyView> {
    const { keys } = toRead(this.#administration);
    const [key, now] = await Promise.all([this.#find(caller, id), askRedis(() => keys.now())]);
    return this.#view(key, now);
  }

  /**
   * @param idempotencyKey undefined: each call makes a key
   * @throws InferenceError `insufficient_scope` if the caller would give what it lacks,
   * `idempotency_mismatch`, `outcome_unknown` or `unavailable`
   */
  async make(
    caller: Caller,
    given: GivenKey & { readonly tenant?: string | undefined },
    idempotencyKey: string | undefined,
  ): Promise<ShownKey> {
    const { keys } = toChange(this.#administration);
    const { tenant = caller.tenant, name = "", scopes = usualScopes, models = caller.models } = given;
    const { expiresAt = latestFor(caller), limits = caller.key?.limits ?? {} } = given;
    needTenant(caller, tenant);
    caller.needGift({ scopes, models, limits });
    needLife(caller, expiresAt);
    const draft = async () => {
      const now = await askRedis(() => keys.now());
      needFuture(expiresAt, now);
      return keys.draft({ tenant, name, scopes, models, limits, createdBy: caller.keyId, createdAt: now, expiresAt });
    };
    return this.#show(caller, idempotencyKey, ["make", given], 0, draft);
  }

  /**
   * Changes the given members.
   * @throws InferenceError `unknown_key`, `insufficient_scope` if the caller lacks what the key may
   * do afterwards, `last_operator_key`, `outcome_unknown` or `unavailable`
   */
  async change(caller: Caller, id: string, given: GivenKey): Promise<KeyView> {
    const { keys, audit } = toChange(this.#administration);
    const now = await askRedis(() => keys.now());
    needFuture(given.expiresAt ?? null, now);
    const how = (key: KeyRecord): KeyRecord => {
      needSeen(caller, key);
      const { name = key.name, scopes = key.scopes, models = key.models, expiresAt = key.expiresAt } = given;
      const { limits = key.limits } = given;
      caller.needGift({ scopes, models, limits });
      if (expiresAt !== key.expiresAt) needLife(caller, expiresAt);
      return { ...key, name, scopes, models, limits, expiresAt };
    };
    const changed = await changeInRedis(() => keys.change(id, how, "last"));
    audit.note("key_changed", auditedKey(caller, changed));
    return this.#view(changed, now);
  }

  /**
   * Makes a key with the same rights in place of a key.
   * @param overlapMs how long the former key is still good
   * @throws InferenceError `unknown_key`, also for a key that is good no longer,
   * `insufficient_scope`, `idempotency_mismatch`, `outcome_unknown` or `unavailable`
   */
  async rotate(caller: Caller, id: string, overlapMs: number, idempotencyKey: string | undefined): Promise<ShownKey> {
    const { keys } = toChange(this.#administration);
    if (overlapMs > LONGEST_OVERLAP_MS) {
      throw new InferenceError("invalid_argument", `overlap must be at most ${LONGEST_OVERLAP_MS} ms`);
    }
    const draft = async () => {
      const [former, now] = await Promise.all([this.#find(caller, id), askRedis(() => keys.now())]);
      caller.needGift(former);
      needLife(caller, former.expiresAt);
      return keys.draftSuccessor(former, now, caller.keyId);
    };
    return this.#show(caller, idempotencyKey, ["rotate", id, overlapMs], overlapMs, draft);
  }

  /**
   * Revokes a key; a second time changes nothing.
   * @throws InferenceError `unknown_key`, `last_operator_key`, `outcome_unknown` or `unavailable`
   */
  async revoke(caller: Caller, id: string): Promise<KeyView> {
    const { keys, audit } = toChange(this.#administration);
    const now = await askRedis(() => keys.now());
    const how = (key: KeyRecord): KeyRecord => revoked(needSeen(caller, key), now);
    const changed = await changeInRedis(() => keys.change(id, how, "last"));
    audit.note("key_revoked", auditedKey(caller, changed));
    return this.#view(changed, now);
  }

  async #show(
    caller: Caller,
    key: string | undefined,
    asked: unknown,
    overlapMs: number,
    draft: () => Promise<MadeKey>,
  ): Promise<ShownKey> {
    const { keys, kept, audit } = toChange(this.#administration);
    const call = key === undefined ? undefined : { caller, key, asked };
    const made = call === undefined ? { ...(await draft()), isReplayed: false } : await kept.first(call, draft);
    // The first call may have come from a caller that could do more: a token of the same subject,
    // or this key before a change.
    caller.needGift(made.record);
    needLife(caller, made.record.expiresAt);
    await changeInRedis(() => keys.write(made.record, overlapMs));
    if (!made.isReplayed) {
      const { id, tenant, rotatedFrom: former } = made.record;
      if (former === undefined) audit.note("key_created", auditedKey(caller, made.record));
      else audit.note("key_rotated", { ...auditedKey(caller, { id: former, tenant }), reason: `replaced by ${id}` });
    }
    return { view: { ...viewOfActive(made.record), key: made.text }, isReplayed: made.isReplayed };
  }

  async #view(key: KeyRecord, now: number): Promise<KeyView> {
    const { keys } = toRead(this.#administration);
    const [view] = await askRedis(() => keys.views([key], now));
    return view ?? keyView(key, now);
  }

  async #find(caller: Caller, id: string): Promise<KeyRecord> {
    const { keys } = toRead(this.#administration);
    return needSeen(caller, await askRedis(() => keys.find(id)));
  }
}

/** What the audit says of a change of a key. */
function auditedKey({ keyId: actor }: Caller, { id, tenant }: Pick<KeyRecord, "id" | "tenant">): AuditDetails {
  return { key_id: id, tenant, actor };
}

/** The view of a key that is good, which costs no call to Redis. */
function viewOfActive(key: KeyRecord, usedAt?: number): KeyView {
  return keyView(key, key.createdAt ?? 0, usedAt);
}

/**
 * @returns the key
 * @throws InferenceError `unknown_key` if no such key exists for the caller
 */
function needSeen(caller: Caller, key: KeyRecord): KeyRecord {
  if (!caller.may("operator") && key.tenant !== caller.tenant) throw fixedError("unknown_key", "usual");
  return key;
}

/** @throws InferenceError for another tenant than the caller's own, whether or not it exists */
/**
 * @returns when a key that the caller makes expires at the latest; null: never. A token, which
 * lives for minutes, sets no such limit
 */
function latestFor(caller: Caller): number | null {
  return caller.may("operator") ? null : (caller.key?.expiresAt ?? null);
}

/**
 * @param expiresAt null: never
 * @throws InferenceError `insufficient_scope` for a longer life than the caller's key has
 */
function needLife(caller: Caller, expiresAt: number | null): void {
  const latest = latestFor(caller);
  if (latest === null || (expiresAt !== null && expiresAt <= latest)) return;
  throw new InferenceError("insufficient_scope", "the API key cannot give a longer life than its own");
}

/** @param expiresAt null: never */
function needFuture(expiresAt: number | null, now: number): void {
  if (expiresAt !== null && expiresAt <= now) {
    throw new InferenceError("invalid_argument", "expires_at must not lie in the past: DELETE revokes a key");
  }
}
