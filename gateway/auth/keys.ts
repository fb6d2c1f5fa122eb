/**
 * Makes, rotates and revokes keys in Redis. A record has an HMAC of its key, so nobody can read a
 * key again.
 */
import { fixedError } from "#shared/errors.js";
import { placeIn, readIndex, readKeys } from "#shared/queue/owners/owners.js";
import { forgetSomeKeys } from "#shared/queue/owners/tidy.js";
import { readUses } from "#shared/queue/owners/uses.js";
import { writeKey, type Written } from "#shared/queue/owners/write-owner.js";
import { ownerKeys } from "#shared/queue/keys.js";
import { timeAt } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { digestOf, last4, newKey } from "./key.js";
import { keyView, stateOf, type KeyView } from "./key-view.js";
import { hashText, keyRecord, recordText, type KeyRecord } from "./owner/records.js";
import type { Limits } from "./owner/limits.js";
import type { Scope } from "./owner/scopes.js";

/** How long Redis keeps the record of a revoked key, in ms. */
const REVOKED_KEPT_MS = 30 * 86_400_000;
/** The longest overlap of a rotated key with the new one, in ms. */
export const LONGEST_OVERLAP_MS = 30 * 86_400_000;
/** Most attempts at a change that other changes overtake. */
export const MOST_TRIES = 10;
/** Records of one read. */
const AT_ONCE = 500;

export interface KeyTerms {
  readonly tenant: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly models: readonly string[];
  readonly limits?: Limits | undefined;
  /** Ms from now until the key expires; undefined: never. */
  readonly livesMs: number | undefined;
  /** Id of the key that made this one; undefined for the program `keys`. */
  readonly createdBy: string | undefined;
}

/** A new key, which nobody can read again. */
export interface MadeKey {
  readonly record: KeyRecord;
  readonly text: string;
}

/** Which keys a list has. */
export interface KeyQuery {
  /** Undefined: the keys of all tenants. */
  readonly tenant: string | undefined;
  readonly limit: number;
  /** The list begins behind this key; undefined for the first page. */
  readonly after: string | undefined;
  readonly isWanted: (key: KeyRecord) => boolean;
}

type RecordTerms = Omit<KeyRecord, "id" | "hash" | "last4" | "revokedAt" | "limits"> & {
  readonly limits?: Limits | undefined;
};

/** Makes a key that no store has yet. */
export function makeKey(terms: RecordTerms, pepper: Buffer): MadeKey {
  const { id, text } = newKey();
  const hash = hashText(digestOf(text, pepper));
  return { record: keyRecord.parse({ ...terms, id, hash, last4: last4(text) }), text };
}

export interface KeysSettings {
  readonly redis: RedisClient;
  /** The secret under which Redis holds keys; undefined where no key is made. */
  readonly pepper: Buffer | undefined;
}

export class Keys {
  readonly #settings: KeysSettings;

  constructor(settings: KeysSettings) {
    this.#settings = settings;
  }

  /** Redis ms, by which keys expire. */
  async now(): Promise<number> {
    return Math.floor(await timeAt(this.#settings.redis, ownerKeys.ids));
  }

  async make({ livesMs, ...terms }: KeyTerms): Promise<MadeKey> {
    const now = await this.now();
    const made = this.draft({ ...terms, createdAt: now, expiresAt: livesMs === undefined ? null : now + livesMs });
    await this.write(made.record);
    return made;
  }

  /** @throws InferenceError `unknown_key` */
  async find(id: string): Promise<KeyRecord> {
    return (await this.#read(id)).record;
  }

  /**
   * Lists all keys, the newest first.
   * @param tenant undefined: the keys of all tenants
   */
  async list(tenant: string | undefined): Promise<KeyRecord[]> {
    return (await this.page({ tenant, limit: Infinity, after: undefined, isWanted: () => true })) ?? [];
  }

  /**
   * Lists keys, the newest first.
   * @returns at most one more than `limit`; undefined if there is no key `after`
   */
  async page({ tenant, limit, after, isWanted }: KeyQuery): Promise<KeyRecord[] | undefined> {
    const { redis } = this.#settings;
    const index = { of: "keys", tenant } as const;
    const place = after === undefined ? -1 : await placeIn(redis, index, after);
    if (place === undefined) return undefined;
    const found: KeyRecord[] = [];
    // Reads more at a time if few of the keys are wanted.
    let count = Math.min(limit + 1, AT_ONCE);
    for (let from = place + 1; found.length <= limit; count = Math.min(2 * count, AT_ONCE)) {
      const ids = await readIndex(redis, index, from, count);
      const records = (await readKeys(redis, ids)).flatMap((text) => (text === undefined ? [] : [parse(text)]));
      found.push(...records.filter(isWanted));
      from += ids.length;
      if (ids.length < count) break;
    }
    return found.slice(0, limit + 1);
  }

  /** Keys as their administrators see them. */
  async views(keys: readonly KeyRecord[], now: number): Promise<KeyView[]> {
    const ids = keys.map(({ id }) => id);
    const uses = await readUses(this.#settings.redis, ids);
    return keys.map((key, i) => keyView(key, now, uses[i]));
  }

  /** Makes a key that Redis does not have yet. */
  draft(terms: RecordTerms): MadeKey {
    const { pepper } = this.#settings;
    if (pepper === undefined) throw new TypeError("without a pepper no key is made");
    return makeKey(terms, pepper);
  }

  /**
   * Drafts a key with the same rights and the same expiry.
   * @throws InferenceError `unknown_key` for a key that is good no longer
   */
  draftSuccessor(former: KeyRecord, now: number, createdBy: string | undefined): MadeKey {
    if (stateOf(former, now) !== "active") throw fixedError("unknown_key", "usual");
    const { tenant, name, scopes, models, limits, expiresAt, id: rotatedFrom } = former;
    return this.draft({ tenant, name, scopes, models, limits, createdBy, createdAt: now, expiresAt, rotatedFrom });
  }

  /**
   * Makes a key with the same rights and the same expiry.
   * @param overlapMs how long the former key is still good, in ms
   * @throws InferenceError `unknown_key`, also for a key that is good no longer
   */
  async rotate(id: string, overlapMs: number, createdBy: string | undefined): Promise<MadeKey> {
    const made = this.draftSuccessor(await this.find(id), await this.now(), createdBy);
    await this.write(made.record, overlapMs);
    return made;
  }

  /**
   * Writes a drafted key. A second time does no harm.
   * @param overlapMs how long the key that this one replaces is still good
   * @throws InferenceError `unknown_key` if that key was revoked after the draft was made
   */
  async write(record: KeyRecord, overlapMs = 0): Promise<void> {
    const { rotatedFrom, createdAt = 0 } = record;
    if (rotatedFrom !== undefined) {
      const [written] = await readKeys(this.#settings.redis, [record.id]);
      if (written !== undefined) return;
      const end = createdAt + overlapMs;
      // The former key ends first: if this process dies between the two writes, no key is left that
      // its owner has not seen.
      await this.change(rotatedFrom, (key) => {
        if (key.revokedAt !== null) throw fixedError("unknown_key", "usual");
        return { ...key, expiresAt: Math.min(key.expiresAt ?? end, end) };
      });
    }
    // A key that has changed meanwhile was written by an earlier call.
    const said = await this.#write(record, undefined);
    if (said === "written") await forgetSomeKeys(this.#settings.redis, record.tenant);
  }

  /**
   * @param spares `last` to leave at least one key of an operator
   * @throws InferenceError `unknown_key`, `last_operator_key`, and each error of `how`
   */
  async change(id: string, how: (key: KeyRecord) => KeyRecord, spares: "last" | "none" = "none"): Promise<KeyRecord> {
    for (let i = 0; i < MOST_TRIES; i++) {
      const { record, text } = await this.#read(id);
      const changed = keyRecord.parse(how(record));
      const said = await this.#write(changed, text, spares);
      if (said === "last") throw fixedError("last_operator_key", "usual");
      if (said === "written") return changed;
    }
    throw fixedError("outcome_unknown", "change");
  }

  /**
   * Revokes a key; a second time changes nothing.
   * @throws InferenceError `unknown_key`
   */
  async revoke(id: string): Promise<KeyRecord> {
    const now = await this.now();
    return this.change(id, (key) => revoked(key, now));
  }

  #write(record: KeyRecord, from: string | undefined, spares: "last" | "none" = "none"): Promise<Written> {
    const { id, tenant, scopes, expiresAt, revokedAt } = record;
    const isOperator = scopes.includes("operator") && revokedAt === null;
    const key = { id, tenant, operatorUntil: isOperator ? (expiresAt ?? Infinity) : undefined };
    const ttlMs = revokedAt === null ? undefined : REVOKED_KEPT_MS;
    const to = { from, to: recordText(record), ...(ttlMs !== undefined && { ttlMs }) };
    return writeKey(this.#settings.redis, key, to, spares);
  }

  async #read(id: string): Promise<{ readonly record: KeyRecord; readonly text: string }> {
    const [text] = await readKeys(this.#settings.redis, [id]);
    if (text === undefined) throw fixedError("unknown_key", "usual");
    return { record: parse(text), text };
  }
}

function parse(text: string): KeyRecord {
  return keyRecord.parse(JSON.parse(text));
}

/** @param now Redis ms */
export function revoked(key: KeyRecord, now: number): KeyRecord {
  return { ...key, revokedAt: key.revokedAt ?? now };
}
