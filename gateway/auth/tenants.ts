/**
 * What the fleet may do for a tenant while no client asks: for a job that is due, for a time of a
 * schedule, for a line of a batch. Such work stops with its tenant, and not with the key that
 * submitted it.
 */
import { fixedError } from "#shared/errors.js";
import { NO_KEY } from "#shared/contract/usage.js";
import { asksForKeys } from "#shared/queue/deployment.js";
import { readTenants } from "#shared/queue/owners/owners.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis } from "../admission/ask-redis.js";
import { RequestBudget } from "../admission/budget.js";
import { allows } from "./owner/globs.js";
import { limitsInForce, workBudgetOf, type LimitedTenant, type LimitsOf } from "./owner/limits.js";
import { tenantRecord, type TenantRecord } from "./owner/records.js";

/** What work of a tenant may do that no client sends. */
export interface TenantTerms {
  /** Whether the tenant may use the model of a name. */
  readonly mayUse: (model: string) => boolean;
  /** The limits of the tenant that are in force. */
  readonly limited: LimitedTenant;
  readonly budget: RequestBudget;
}

export interface TenantsSettings {
  readonly redis: RedisClient;
  readonly limitsOf?: LimitsOf;
  /** In ms, for example of `performance.now()`. */
  readonly now?: () => number;
}

/** How long a change of a tenant may stay unseen, in ms. */
const STALE_MS = 1_000;
/** Most tenants to remember; beyond it, this process forgets all and asks again. */
const MOST = 10_000;

export class Tenants {
  readonly #settings: TenantsSettings;
  readonly #known = new Map<string, { readonly since: number; readonly record: Promise<TenantRecord | undefined> }>();

  #asked: { readonly since: number; readonly said: Promise<boolean> } | undefined;

  constructor(settings: TenantsSettings) {
    this.#settings = settings;
  }

  /** @throws InferenceError `tenant_suspended` or `unavailable` */
  async termsOf(tenant: string): Promise<TenantTerms> {
    const record = await this.#find(tenant);
    if (record?.state === "suspended") throw fixedError("tenant_suspended", "usual");
    const limited = await this.limitsOf(tenant);
    return {
      mayUse: (model) => record === undefined || allows(record.models, model),
      limited,
      budget: new RequestBudget(workBudgetOf(limited, (await this.#countsUsage()) ? NO_KEY : undefined)),
    };
  }

  /**
   * The limits of the tenant that are in force, also if it is suspended.
   * @throws InferenceError `unavailable`
   */
  async limitsOf(tenant: string): Promise<LimitedTenant> {
    return (this.#settings.limitsOf ?? limitsInForce)(tenant, await this.#find(tenant));
  }

  /** Without keys nobody may read usage, and nobody counts it. */
  async #countsUsage(): Promise<boolean> {
    const { redis, now = () => performance.now() } = this.#settings;
    if (this.#asked === undefined || now() - this.#asked.since >= STALE_MS) {
      this.#asked = { since: now(), said: askRedis(() => asksForKeys(redis)) };
      this.#asked.said.catch(() => (this.#asked = undefined));
    }
    return this.#asked.said;
  }

  #find(tenant: string): Promise<TenantRecord | undefined> {
    const { now = () => performance.now() } = this.#settings;
    const known = this.#known.get(tenant);
    if (known !== undefined && now() - known.since < STALE_MS) return known.record;
    if (this.#known.size >= MOST) this.#known.clear();
    const record = this.#read(tenant);
    this.#known.set(tenant, { since: now(), record });
    record.catch(() => this.#known.delete(tenant));
    return record;
  }

  async #read(tenant: string): Promise<TenantRecord | undefined> {
    const [text] = await askRedis(() => readTenants(this.#settings.redis, [tenant]));
    if (text === undefined) return undefined;
    try {
      return tenantRecord.parse(JSON.parse(text));
    } catch (cause) {
      // The tenant may be suspended, so its work waits until somebody has mended the record.
      throw fixedError("unavailable", "keys", { cause });
    }
  }
}
