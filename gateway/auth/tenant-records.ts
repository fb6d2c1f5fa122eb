/** Makes, changes and removes the records of tenants in Redis. */
import { fixedError } from "#shared/errors.js";
import { ownerKeys } from "#shared/queue/keys.js";
import { placeIn, readIndex, readTenants } from "#shared/queue/owners/owners.js";
import { writeTenant } from "#shared/queue/owners/write-owner.js";
import { timeAt } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { MOST_TRIES } from "./keys.js";
import { tenantRecord, type TenantRecord } from "./owner/records.js";

const index = { of: "tenants" } as const;

export class TenantRecords {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @throws InferenceError `tenant_exists` */
  async make(terms: Omit<TenantRecord, "createdAt">): Promise<TenantRecord> {
    const createdAt = Math.floor(await timeAt(this.#redis, ownerKeys.tenants));
    const record = tenantRecord.parse({ ...terms, createdAt });
    const isMade = await writeTenant(this.#redis, record.id, { from: undefined, to: JSON.stringify(record) });
    if (!isMade) throw fixedError("tenant_exists", "usual");
    return record;
  }

  /** @throws InferenceError `unknown_tenant` */
  async find(id: string): Promise<TenantRecord> {
    return (await this.#read(id)).record;
  }

  /**
   * Lists tenants, the newest first.
   * @returns at most one more than `limit`; undefined if there is no tenant `after`
   */
  async list(limit: number, after: string | undefined): Promise<TenantRecord[] | undefined> {
    const place = after === undefined ? -1 : await placeIn(this.#redis, index, after);
    if (place === undefined) return undefined;
    const records = await readTenants(this.#redis, await readIndex(this.#redis, index, place + 1, limit + 1));
    return records.flatMap((text) => (text === undefined ? [] : [parse(text)]));
  }

  /**
   * @param how returns undefined to remove the tenant
   * @returns the tenant after the change, or as it was removed
   * @throws InferenceError `unknown_tenant`, and each error of `how`
   */
  async change(id: string, how: (tenant: TenantRecord) => TenantRecord | undefined): Promise<TenantRecord> {
    for (let i = 0; i < MOST_TRIES; i++) {
      const { record, text } = await this.#read(id);
      const changed = how(record);
      const to = changed && JSON.stringify(tenantRecord.parse(changed));
      if (await writeTenant(this.#redis, id, { from: text, to })) return changed ?? record;
    }
    throw fixedError("outcome_unknown", "change");
  }

  async #read(id: string): Promise<{ readonly record: TenantRecord; readonly text: string }> {
    const [text] = await readTenants(this.#redis, [id]);
    if (text === undefined) throw fixedError("unknown_tenant", "usual");
    return { record: parse(text), text };
  }
}

function parse(text: string): TenantRecord {
  return tenantRecord.parse(JSON.parse(text));
}
