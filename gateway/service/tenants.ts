/** The operations on tenants, for operators. */
import { fixedError, InferenceError, type ErrorCode } from "#shared/errors.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import { anyOwner } from "../auth/owner/owner.js";
import type { TenantRecord } from "../auth/owner/records.js";
import { tenantView, type TenantView } from "../auth/tenant-view.js";
import { toChange, toRead, type Administration } from "./administration.js";
import { Caller } from "./caller.js";
import type { FileService } from "./files.js";
import { unknownPlace, type Page, type PageTerms } from "./page.js";
import type { ScheduleService } from "./schedules.js";
import type { WebhookService } from "./webhooks.js";

export interface TenantServiceSettings {
  /** Undefined if the deployment asks for no keys. */
  readonly administration: Administration | undefined;
  readonly webhooks: WebhookService;
  readonly schedules: ScheduleService;
  readonly files: FileService;
}

/** Members of a tenant that operators choose. */
export type GivenTenant = { readonly [N in "weight" | "models" | "limits" | "state"]?: TenantRecord[N] | undefined };

/** Things of one read. */
const AT_ONCE = 100;
/** Refusals to remove a thing that another call has removed, or that goes by its TTL. */
const mayStay: ReadonlySet<ErrorCode> = new Set(["unknown_webhook", "unknown_schedule", "unknown_file", "file_in_use"]);

export class TenantService {
  readonly #settings: TenantServiceSettings;

  constructor(settings: TenantServiceSettings) {
    this.#settings = settings;
  }

  /**
   * Lists the tenants, the newest first.
   * @throws InferenceError
   */
  async list({ limit, after }: PageTerms): Promise<Page<TenantView>> {
    const { tenants } = toRead(this.#settings.administration);
    const found = await askRedis(() => tenants.list(limit, after));
    if (found === undefined) throw unknownPlace();
    return { data: found.slice(0, limit).map(tenantView), hasMore: found.length > limit };
  }

  /** @throws InferenceError `unknown_tenant` or `unavailable` */
  async view(id: string): Promise<TenantView> {
    const { tenants } = toRead(this.#settings.administration);
    return tenantView(await askRedis(() => tenants.find(id)));
  }

  /** @throws InferenceError `tenant_exists`, `outcome_unknown` or `unavailable` */
  async make({ keyId: actor }: Caller, id: string, given: GivenTenant): Promise<TenantView> {
    const { weight, models = ["*"], limits = {} } = given;
    const { tenants, audit } = toChange(this.#settings.administration);
    const made = await changeInRedis(() => tenants.make({ id, weight, models, limits, state: "active" }));
    audit.note("tenant_created", { tenant: id, actor });
    return tenantView(made);
  }

  /**
   * Changes the given members.
   * @throws InferenceError `unknown_tenant`, `outcome_unknown` or `unavailable`
   */
  async change({ keyId: actor }: Caller, id: string, given: GivenTenant): Promise<TenantView> {
    const { tenants, audit } = toChange(this.#settings.administration);
    const how = (tenant: TenantRecord): TenantRecord => {
      const { weight = tenant.weight, models = tenant.models, limits = tenant.limits, state = tenant.state } = given;
      return { ...tenant, weight, models, limits, state };
    };
    const changed = await changeInRedis(() => tenants.change(id, how));
    audit.note("tenant_changed", { tenant: id, actor });
    return tenantView(changed);
  }

  /**
   * Removes a tenant with its webhooks, schedules and files. All else goes by its own TTL.
   * @throws InferenceError `unknown_tenant`, `tenant_in_use`, `outcome_unknown` or `unavailable`
   */
  async remove({ keyId: actor }: Caller, id: string): Promise<void> {
    const { keys, tenants, audit, hasInFile } = toChange(this.#settings.administration);
    needSuspended(await askRedis(() => tenants.find(id)));
    const query = { tenant: id, limit: 0, after: undefined, isWanted: isKept };
    const [key] = (await askRedis(() => keys.page(query))) ?? [];
    // A tenant without a record is active, so its keys would be good again.
    if (key !== undefined || hasInFile(id)) throw fixedError("tenant_in_use", "keys");
    await this.#removeThings(Caller.of(anyOwner(id)));
    const isDone = ignoring(new Set(["unknown_tenant"])); // another copy of this call was faster
    await changeInRedis(() => tenants.change(id, needSuspended)).catch(isDone);
    audit.note("tenant_deleted", { tenant: id, actor });
  }

  async #removeThings(owner: Caller): Promise<void> {
    const { webhooks, schedules, files } = this.#settings;
    const allFiles = { isNewestFirst: true, purpose: undefined };
    const found = await Promise.all([
      idsOf(async (terms) => webhooks.list(owner, terms)),
      idsOf(async (terms) => {
        const { data, hasMore } = await schedules.list(owner, terms);
        return { data: data.map(({ schedule }) => schedule), hasMore };
      }),
      idsOf(async (terms) => files.list(owner, terms, allFiles)),
    ]);
    for (const [i, service] of [webhooks, schedules, files].entries()) {
      for (const id of found[i] ?? []) await service.remove(owner, id).catch(ignoring(mayStay));
    }
  }
}

/** Reads all pages of a list. */
async function idsOf(list: (terms: PageTerms) => Promise<Page<{ readonly id: string }>>): Promise<string[]> {
  const ids: string[] = [];
  for (let isMore = true; isMore;) {
    const { data, hasMore } = await list({ limit: AT_ONCE, after: ids.at(-1) });
    ids.push(...data.map(({ id }) => id));
    isMore = hasMore && data.length > 0;
  }
  return ids;
}

function ignoring(codes: ReadonlySet<ErrorCode>): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof InferenceError) || !codes.has(error.code)) throw error;
  };
}

function isKept({ revokedAt }: { readonly revokedAt: number | null }): boolean {
  return revokedAt === null;
}

/**
 * @returns undefined, to remove the tenant
 * @throws InferenceError `tenant_in_use`
 */
function needSuspended({ state }: TenantRecord): undefined {
  if (state !== "suspended") throw fixedError("tenant_in_use", "active");
  return undefined;
}
