/**
 * The limits of the queue, and its counts, in the forms of limits.lua. A request counts from its
 * admission until it leaves the queue: ready, waiting or running.
 */
import { integer, text } from "../../redis/script.js";
import type { Load } from "../pieces/load.js";
import type { CallRate } from "../pieces/rates.js";
import type { CallQuotas, CallUsage, Quota } from "../pieces/usage.js";

/** The limits of a deployment. An absent field means no limit. */
export interface QueueLimits {
  /** Requests of one model. */
  readonly queue: number;
  /** Whether all requests of this process leave as much room to other requests as jobs do. */
  readonly leavesRoom?: boolean;
  /** Bytes of one model's requests. */
  readonly queueBytes?: number;
  /** Requests of one tenant, over all models. */
  readonly tenantQueue?: number | undefined;
  /** Bytes of one tenant's requests, over all models. */
  readonly tenantQueueBytes?: number | undefined;
  /** Bytes of all requests. */
  readonly totalBytes?: number;
  /** Steps that wait behind the running step of their sequence. */
  readonly waitingPerSequence: number;
  /** Live sequences of one model. */
  readonly liveSequences: number;
  /** Jobs of a tenant that wait for their time, and bytes of all such jobs. */
  readonly laterJobs?: number | undefined;
  readonly laterBytes?: number | undefined;
  /** Bytes of all results that clients may fetch later. */
  readonly keptBytes?: number;
  /** How long these results stay, in ms. */
  readonly keptMs?: number;
}

/** What a tenant may have in the queue; an absent field is as the deployment says. */
export interface QueuedLimits {
  readonly requests?: number | undefined;
  readonly bytes?: number | undefined;
}

/** How many generations that have not ended an owner may have. */
export interface OwnerLimit {
  /** As in `Rate`. */
  readonly name: string;
  readonly most: number;
}

/** The limits that can refuse a request. limits.lua has the same list. */
const limits = ["total-bytes", "model-requests", "model-bytes", "tenant-requests", "tenant-bytes"] as const;
export type LimitName = (typeof limits)[number];

/** The same, or the limit that a model's own policy has for the request's priority level. */
export const limitNames = [...limits, "level"] as const;

/** The models and tenants of a call's requests. */
export interface CallNames {
  readonly models: readonly string[];
  readonly tenants: readonly string[];
  /** By tenant; absent for tenants without limits of their own. */
  readonly queued?: ReadonlyMap<string, QueuedLimits> | undefined;
  /** Owners who may have so many generations; absent if there are none. */
  readonly owners?: readonly OwnerLimit[] | undefined;
  /** Quotas of owners; absent if there are none. */
  readonly quotas?: readonly Quota[] | undefined;
  /** Most live sequences of all models, by tenant; absent if no tenant has a limit. */
  readonly sequences?: ReadonlyMap<string, number> | undefined;
  /** Bytes of the largest request, which must fit a bucket's share; absent if there is none. */
  readonly largest?: number;
}

/** Stands for no limit. */
export const UNLIMITED = -1;

/** The limits of a call, in the form that limits.lua reads. */
export interface CallLimits extends CallQuotas {
  readonly models: Readonly<Record<string, readonly [requests: number, bytes: number, sequences: number]>>;
  readonly tenants: Readonly<Record<string, readonly [requests: number, bytes: number]>>;
  readonly all: number;
  /** Replaces `models` and `all` for a job. */
  readonly jobs: {
    readonly models: Readonly<Record<string, readonly [requests: number, bytes: number]>>;
    readonly all: number;
  };
  readonly kept: number;
  readonly keep: number;
  /** Whether a request without room may come again, because other buckets may leave some. */
  readonly again: boolean;
  /** Absent if no tenant has a limit of sequences. */
  readonly sequences?: Readonly<Record<string, number>> | undefined;
  /** Absent if no owner has a limit of generations. */
  readonly owners?: readonly (OwnerLimit & { readonly of: readonly number[] })[] | undefined;
  /** Absent if no request's owner has a rate. */
  readonly rates?: readonly CallRate[] | undefined;
  /** Absent if nobody counts the usage of the requests. */
  readonly usage?: CallUsage | undefined;
}

/** A gateway's knowledge of all buckets, if each bucket has its own counts. */
export interface Shares {
  /** Reads the counts of the other buckets, if the gateway does not know them well enough. */
  prepare(names: CallNames): Promise<void> | undefined;
  /** The limits of the next call to a bucket. */
  limitsOf(bucket: number, names: CallNames): CallLimits;
  /** How many generations of an owner the bucket may hold after the next call. */
  generationsOf(bucket: number, owner: OwnerLimit): number;
  /** What the other buckets leave a bucket of a quota. */
  quotaOf(bucket: number, quota: Quota): number;
  /** Takes the present counts of a bucket. */
  note(bucket: number, loads: readonly Load[]): void;
  /** Call this when a request of so many bytes found no room in all queues together. */
  noteFull(bytes: number): void;
}

/** The share of a limit that jobs may fill. The rest is for clients that wait. */
const JOBS = 0.9;

/** How much of a limit jobs may fill. */
export function jobsShare(most: number): number {
  return most > 1 ? Math.floor(most * JOBS) : most;
}

/** The limits of a call if all buckets share their counts. */
export function limitsOf(limits: QueueLimits, { models, tenants, queued, sequences }: CallNames): CallLimits {
  const { queue, queueBytes, tenantQueue, tenantQueueBytes, totalBytes, liveSequences } = limits;
  const { keptBytes, keptMs, leavesRoom = false } = limits;
  const share = leavesRoom ? jobsShare : (most: number) => most;
  const ofModel = [share(queue), share(queueBytes ?? UNLIMITED), liveSequences] as const;
  const ofTenant = (tenant: string) => {
    const { requests = tenantQueue ?? UNLIMITED, bytes = tenantQueueBytes ?? UNLIMITED } = queued?.get(tenant) ?? {};
    return [requests, bytes] as const;
  };
  const ofModelsJobs = [jobsShare(queue), jobsShare(queueBytes ?? UNLIMITED)] as const;
  return {
    models: Object.fromEntries(models.map((model) => [model, ofModel])),
    tenants: Object.fromEntries(tenants.map((tenant) => [tenant, ofTenant(tenant)])),
    all: share(totalBytes ?? UNLIMITED),
    jobs: {
      models: Object.fromEntries(models.map((model) => [model, ofModelsJobs])),
      all: jobsShare(totalBytes ?? UNLIMITED),
    },
    kept: keptBytes ?? UNLIMITED,
    keep: keptMs ?? Number.MAX_SAFE_INTEGER,
    again: false,
    ...(sequences && { sequences: Object.fromEntries(sequences) }),
  };
}

/** Reads a list of field, requests and bytes. */
export function loadsOf(reply: readonly unknown[]): Load[] {
  const loads: Load[] = [];
  for (let i = 0; i + 2 < reply.length; i += 3) {
    loads.push({ field: text(reply[i]), requests: integer(reply[i + 1]), bytes: integer(reply[i + 2]) });
  }
  return loads;
}

/**
 * The limit that another request would exceed, by the rules of limits.lua.
 * @param loads the present counts of all requests, of the request's model and of its tenant
 */
export function limitPassed(
  { all, models, tenants }: CallLimits,
  { model, tenant, bytes }: { readonly model: string; readonly tenant: string; readonly bytes: number },
  loads: { readonly all: Load; readonly model: Load; readonly tenant: Load },
): LimitName | undefined {
  const past = (now: number, most = UNLIMITED) => most >= 0 && now > most;
  const [modelRequests, modelBytes] = models[model] ?? [];
  const [tenantRequests, tenantBytes] = tenants[tenant] ?? [];
  if (past(loads.all.bytes + bytes, all)) return "total-bytes";
  if (past(loads.model.requests + 1, modelRequests)) return "model-requests";
  if (past(loads.model.bytes + bytes, modelBytes)) return "model-bytes";
  if (past(loads.tenant.requests + 1, tenantRequests)) return "tenant-requests";
  if (past(loads.tenant.bytes + bytes, tenantBytes)) return "tenant-bytes";
  return undefined;
}
