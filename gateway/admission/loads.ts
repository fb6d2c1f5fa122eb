/**
 * This gateway's view of the queue's load: whether there is room for anything at all. In a Redis
 * Cluster each bucket counts its own requests, so the view also says how much of the limits a
 * bucket may use. With one server the script compares with the limits themselves.
 *
 * In a Cluster a bucket may have its present load, and its part of the room that other buckets
 * leave. That part becomes smaller with each call. So a model whose load lies in few buckets comes
 * to the whole limit in many small steps. Gateways that know nothing of each other share the room
 * out instead of each taking all of it. Admission that finds no room asks again as long as there
 * seems to be some (`hasRoom`).
 */
import type { Logger } from "pino";
import {
  jobsShare,
  limitsOf,
  type CallLimits,
  type CallNames,
  type LimitName,
  type OwnerLimit,
  type QueuedLimits,
  type QueueLimits,
  type Shares,
} from "#shared/queue/admission/limits.js";
import { batchKeys, loadKey } from "#shared/queue/keys.js";
import { readLoads, type Load } from "#shared/queue/pieces/load.js";
import { loadFieldOf, type Quota } from "#shared/queue/pieces/usage.js";
import { keptShare } from "#shared/queue/pieces/kept.js";
import { readTaken } from "#shared/queue/admission/read-taken.js";
import { recountSequences } from "#shared/queue/admission/recount-sequences.js";
import { heldField, isHeldField, readHeld } from "#shared/queue/pieces/held.js";
import { readPins } from "#shared/queue/pins.js";
import { recount } from "#shared/queue/admission/recount.js";
import { reapKept } from "#shared/queue/admission/reap-kept.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { delay, within } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import { fieldsOf, KNOWN_MS, LoadView } from "./load-view.js";

/**
 * How often the gateway looks for room again, and in a Cluster reads the loads of all buckets, in
 * ms.
 */
const LOOK_MS = 250;
/** A call to a bucket first asks for loads of other buckets that are older than this, in ms. */
const FRESH_MS = 500;
/** Longest wait of a call for the loads of other buckets, in ms: a master may be away. */
const PATIENCE_MS = 250;
/** How often gateways drop kept results that are too old or too many, in ms. */
const REAP_MS = 1_000;
/** How often one of all gateways counts again, in ms. */
const RECOUNT_MS = 5_000;
/** One of so many rounds also counts the sequences again. */
const ROUNDS_PER_SEQUENCES = 6;

export interface LoadsSettings {
  readonly redis: RedisClient;
  readonly limits: QueueLimits;
  readonly buckets: number;
  readonly world?: World;
  readonly log: Logger;
}

/** A request that asks for room. */
export interface Asking {
  readonly model: string;
  readonly tenant: string;
  readonly bytes: number;
  /** Jobs leave some room to other requests. */
  readonly isJob: boolean;
  /** The tenant's own limits; absent if it has none. */
  readonly queued?: QueuedLimits | undefined;
  /** The tenant's own limit of sequences; absent if it has none. */
  readonly liveSequences?: number | undefined;
}

/** A limit of the live sequences of a model, or of a tenant. */
export type SequenceLimit = "sequences" | "tenant-sequences";

/** A gateway is not ready if requests up to this size, in bytes, find no room. */
const SMALL_BYTES = 65_536;

export class QueueLoads implements Shares {
  readonly #settings: LoadsSettings;
  readonly #world: World;
  /** The loads by bucket; outside of a Cluster there is one. */
  readonly #view: LoadView;
  /**
   * Bytes of the last small request for which all queues together had no room; 0 if there is room.
   */
  #refusedBytes = 0;
  /** How often this gateway has made a round of counting again. */
  #rounds = 0;
  #looking: Promise<void> | undefined;

  constructor(settings: LoadsSettings) {
    this.#settings = settings;
    this.#world = settings.world ?? realWorld;
    this.#view = new LoadView(settings.redis.isCluster ? settings.buckets : 1, this.#world);
  }

  /** Whether all queues together have no room for even a small request. */
  get isFull(): boolean {
    return this.#refusedBytes > 0;
  }

  prepare(names: CallNames, freshMs = FRESH_MS): Promise<void> | undefined {
    const { redis } = this.#settings;
    if (!redis.isCluster || this.#view.knows(names, this.#world.now() - freshMs)) return undefined;
    for (const field of ["all", ...fieldsOf(names)]) this.#view.use(field);
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return within(PATIENCE_MS, this.#looking, this.#world).then(() => undefined);
  }

  limitsOf(bucket: number, names: CallNames): CallLimits {
    const { redis, limits } = this.#settings;
    const plain = limitsOf(limits, names);
    if (!redis.isCluster) return plain;
    const now = this.#world.now();
    const view = this.#view;
    const requestsOf = (field: string, most: number) => view.shareOf(field, "requests", bucket, most, now);
    const bytesOf = (field: string, most: number) => view.shareOf(field, "bytes", bucket, most, now, names.largest);
    const shares = <Of>(all: Readonly<Record<string, Of>>, share: (name: string, of: Of) => Of) =>
      Object.fromEntries(Object.entries(all).map(([name, of]) => [name, share(name, of)]));
    return {
      models: shares(plain.models, (name, [most, bytes, sequences]) => [
        requestsOf(`m:${name}`, most),
        bytesOf(`m:${name}`, bytes),
        requestsOf(`s:${name}`, sequences),
      ]),
      tenants: shares(plain.tenants, (name, [most, bytes]) => [
        requestsOf(`t:${name}`, most),
        bytesOf(`t:${name}`, bytes),
      ]),
      all: bytesOf("all", plain.all),
      jobs: {
        models: shares(plain.jobs.models, (name, [most, bytes]) => [
          requestsOf(`m:${name}`, most),
          bytesOf(`m:${name}`, bytes),
        ]),
        all: bytesOf("all", plain.jobs.all),
      },
      kept: keptShare(limits.keptBytes, this.#settings.buckets),
      keep: plain.keep,
      again: true,
      ...(plain.sequences && {
        sequences: shares(plain.sequences, (name, most) => requestsOf(heldField(name), most)),
      }),
    };
  }

  generationsOf(bucket: number, { name, most }: OwnerLimit): number {
    if (!this.#settings.redis.isCluster) return most;
    return this.#view.shareOf(`g:${name}`, "requests", bucket, most, this.#world.now());
  }

  quotaOf(bucket: number, quota: Quota): number {
    if (!this.#settings.redis.isCluster) return quota.most;
    return quota.most - this.#view.sumBeside(loadFieldOf(quota), "requests", bucket);
  }

  note(bucket: number, loads: readonly Load[]): void {
    if (this.#settings.redis.isCluster) this.#view.note(bucket, loads, this.#world.now());
  }

  noteFull(bytes: number): void {
    const { redis, limits } = this.#settings;
    const most = limits.totalBytes ?? Infinity;
    // Small requests may find room even if a large one finds none now, or never could.
    if (bytes > Math.min(most, SMALL_BYTES)) return;
    // Only the bucket's part was too small: all buckets together have room.
    if (redis.isCluster && this.#view.sum("all", "bytes") + bytes <= most) return;
    if (this.#refusedBytes === 0) {
      this.#settings.log.warn(
        { bytes },
        "all queues together hold what they may: not ready, see BATON_TOTAL_QUEUE_BYTES",
      );
    }
    this.#refusedBytes = bytes;
  }

  /**
   * Whether a request that a bucket refused may find room there at the next try, because other
   * buckets leave some.
   */
  hasRoom(limit: LimitName | SequenceLimit | OwnerLimit, asking: Asking): boolean {
    const { redis, limits } = this.#settings;
    const { model, tenant, bytes, isJob, queued = {}, liveSequences = Infinity } = asking;
    const names = {
      models: [model],
      tenants: [tenant],
      owners: typeof limit === "object" ? [limit] : undefined,
      sequences: limit === "tenant-sequences" ? new Map([[tenant, liveSequences]]) : undefined,
    };
    if (!redis.isCluster || !this.#view.knows(names, this.#world.now() - KNOWN_MS)) return false;
    const sum = (field: string, of: "requests" | "bytes") => this.#view.sum(field, of);
    if (typeof limit === "object") return sum(`g:${limit.name}`, "requests") < limit.most;
    const share = (most: number) => (isJob || limits.leavesRoom === true ? jobsShare(most) : most);
    switch (limit) {
      case "total-bytes":
        return sum("all", "bytes") + bytes <= share(limits.totalBytes ?? Infinity);
      case "model-requests":
        return sum(`m:${model}`, "requests") < share(limits.queue);
      case "model-bytes":
        return sum(`m:${model}`, "bytes") + bytes <= share(limits.queueBytes ?? Infinity);
      case "tenant-requests":
        return sum(`t:${tenant}`, "requests") < (queued.requests ?? limits.tenantQueue ?? Infinity);
      case "tenant-bytes":
        return sum(`t:${tenant}`, "bytes") + bytes <= (queued.bytes ?? limits.tenantQueueBytes ?? Infinity);
      case "sequences":
        return sum(`s:${model}`, "requests") < limits.liveSequences;
      case "tenant-sequences":
        return sum(heldField(tenant), "requests") < liveSequences;
    }
  }

  /** Keeps this view current and the counts right, until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#every(LOOK_MS, signal, () => this.#look()),
      this.#every(REAP_MS, signal, () => this.#ofEachKey((load) => this.#reap(load, signal))),
      this.#every(RECOUNT_MS, signal, () => this.#recountAll(signal)),
    ]);
  }

  /** The keys under which Redis counts requests, and batches in their owners' rates. */
  get #keys(): string[] {
    const { redis, buckets } = this.#settings;
    if (!redis.isCluster) return [loadKey(undefined)];
    return [...Array.from({ length: buckets }, (_, bucket) => loadKey(bucket)), batchKeys.load];
  }

  async #every(ms: number, signal: AbortSignal, act: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      await delay(ms * (0.8 + this.#world.random() * 0.4), signal, this.#world);
      if (!signal.aborted && this.#settings.redis.status === "ready") await act();
    }
  }

  /** The master of one bucket may be away while the masters of other buckets are there. */
  async #ofEachKey(act: (load: string) => Promise<void>): Promise<void> {
    await Promise.all(this.#keys.map((load) => act(load).catch((error: unknown) => this.#failed(error))));
  }

  #failed(error: unknown): void {
    const { redis, log } = this.#settings;
    dropIfSilent(redis, error);
    log.debug({ error: String(error) }, "what is queued could not be looked at; the next round tries again");
  }

  /** Asks for the loads that the next calls need, and for nothing if no call needs any. */
  async #look(): Promise<void> {
    const { redis, buckets, limits, log } = this.#settings;
    const isCluster = redis.isCluster;
    const fields = isCluster ? this.#view.fieldsInUse(this.#world.now()) : [];
    const wanted = this.isFull && !fields.includes("all") ? [...fields, "all"] : fields;
    if (wanted.length > 0) {
      const asked = isCluster ? Array.from({ length: buckets }, (_, bucket) => bucket) : [0];
      await Promise.all(
        asked.map(async (bucket) => {
          try {
            this.#view.note(bucket, await this.#read(isCluster ? bucket : undefined, wanted), this.#world.now());
          } catch (error) {
            this.#failed(error);
          }
        }),
      );
    }
    if (!this.isFull || this.#view.sum("all", "bytes") + this.#refusedBytes > (limits.totalBytes ?? Infinity)) return;
    this.#refusedBytes = 0;
    log.info("there is room in the queues again: ready");
  }

  async #read(bucket: number | undefined, fields: readonly string[]): Promise<Load[]> {
    const { redis } = this.#settings;
    const quotas = fields.filter((field) => field.startsWith("q:"));
    const sequences = fields.filter(isHeldField);
    const counts = fields.filter((field) => !quotas.includes(field) && !sequences.includes(field));
    const held = sequences.length > 0 && bucket !== undefined ? readHeld(redis, bucket, sequences) : [];
    const loads = (await Promise.all([readLoads(redis, bucket, counts), held])).flat();
    if (quotas.length === 0) return loads;
    // Without them, quotas of this bucket count as if the others had used nothing; the loads count.
    const taken = await readTaken(redis, bucket, quotas).catch((error: unknown) => {
      this.#failed(error);
      return [];
    });
    return [...loads, ...taken];
  }

  async #reap(load: string, signal: AbortSignal): Promise<void> {
    const { redis, limits, buckets } = this.#settings;
    const most = keptShare(limits.keptBytes, redis.isCluster ? buckets : 1);
    while (!signal.aborted && (await reapKept(redis, load, most)));
  }

  async #recountAll(signal: AbortSignal): Promise<void> {
    await this.#ofEachKey((load) => this.#recount(load, signal));
    if (++this.#rounds % ROUNDS_PER_SEQUENCES === 0) await this.#recountSequences();
  }

  async #recount(load: string, signal: AbortSignal): Promise<void> {
    const { redis, log } = this.#settings;
    const mended = await recount(redis, load, RECOUNT_MS, signal);
    if (mended > 0) log.warn({ mended, load }, "what is counted of the queue was put right");
  }

  /** The master of one bucket may be away while the masters of other buckets are there. */
  async #recountSequences(): Promise<void> {
    const { redis, buckets, log } = this.#settings;
    const count = async (bucket: number, models: readonly string[]) => {
      const mended = await recountSequences(redis, bucket, models, ROUNDS_PER_SEQUENCES * RECOUNT_MS);
      if (mended > 0) log.warn({ mended, bucket }, "what is counted of sequences was put right");
    };
    try {
      const models = [...new Set((await readPins(redis)).map(({ model }) => model))];
      const all = Array.from({ length: buckets }, (_, bucket) => bucket);
      await Promise.all(all.map((bucket) => count(bucket, models).catch((error: unknown) => this.#failed(error))));
    } catch (error) {
      this.#failed(error);
    }
  }
}
