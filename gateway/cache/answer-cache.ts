/**
 * Looks answers up in Redis, and keeps the answers of the requests that have to run. A request
 * never fails because of the cache: if Redis does not answer soon, the request runs.
 */
import { bucketOf } from "#shared/queue/address.js";
import { keepAnswer } from "#shared/queue/cache/keep.js";
import { lookUp, type CachePlace, type HitOwner, type LookedUp } from "#shared/queue/cache/look-up.js";
import type { Shares } from "#shared/queue/admission/limits.js";
import { modelTag } from "#shared/queue/keys.js";
import { decodeFrame, encodeFrame, type Tensor } from "#shared/frame.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { within } from "#shared/retry.js";
import { realWorld } from "#shared/world.js";
import type { Inference, InferenceOutcome, InferenceRequest } from "../admission/inference.js";
import { cacheCountsOf, type ModelCacheCounts } from "./counts.js";
import { answerDigest } from "./digest.js";

export interface CacheSettings {
  readonly redis: RedisClient;
  /** A second connection, for large values. */
  readonly forLarge: RedisClient;
  readonly buckets: number;
  /** What a bucket of a Cluster may use of the quotas of owners. */
  readonly shares: Pick<Shares, "prepare" | "quotaOf">;
  readonly usageDays: number;
  /** Of all answers of the deployment. */
  readonly mostBytes: number;
  readonly ttlMs: number;
}

const DAY_MS = 86_400_000;
/** Longest wait of a request for the cache, in ms. */
const PATIENCE_MS = 200;
/**
 * After a look-up without an answer, all requests run for so long, in ms, without asking the cache.
 */
const REST_MS = 1_000;
/** An answer that takes more than this part of a place would drop too many others. */
const LARGEST_PART = 1 / 8;
/** Requests with more bytes of inputs run each time: to digest them would hold up other clients. */
const MOST_INPUT_BYTES = 4_194_304;
/** Most answers on their way into the cache, and their bytes. Further answers are not kept. */
const KEEPING = { answers: 16, bytes: 16_777_216 };

type Found = { readonly said: "hit"; readonly tensors: readonly Tensor[] } | { readonly said: "miss" | "skip" };

export class AnswerCache {
  readonly #settings: CacheSettings;
  /** Of a place. */
  readonly #mostBytes: number;
  /** The digests of answers on their way into the cache. */
  readonly #keeping = new Set<string>();
  #keepingBytes = 0;
  /** On `performance.now()`'s clock. */
  #restsUntil = -Infinity;

  constructor(settings: CacheSettings) {
    this.#settings = settings;
    const { redis, mostBytes, buckets } = settings;
    this.#mostBytes = redis.isCluster ? Math.floor(mostBytes / buckets) : mostBytes;
  }

  async infer(request: InferenceRequest, inner: Inference): Promise<InferenceOutcome> {
    const since = performance.now();
    const { model, tenant, trace } = request;
    const counts = cacheCountsOf(model);
    if (since < this.#restsUntil || bytesOf(request) > MOST_INPUT_BYTES) {
      counts.missed(0);
      return inner.infer(request);
    }
    const digest = answerDigest(request);
    const place = { digest, bucket: bucketOf(model.name, tenant, digest, this.#settings.buckets) };
    const found = await this.#find(request, place);
    const ms = performance.now() - since;
    if (found.said === "hit") {
      counts.hit(ms);
      const { name, version } = model;
      trace?.note({ "baton.model": name, "baton.version": version, "baton.tenant": tenant, "baton.cache": "hit" });
      return { kind: "result", tensors: found.tensors, version };
    }
    counts.missed(ms);
    const outcome = await inner.infer(request);
    if (found.said === "miss" && outcome.kind === "result") this.#keepLater(place, outcome.tensors, counts);
    return outcome;
  }

  async #find(request: InferenceRequest, place: CachePlace): Promise<Found> {
    try {
      const asking = this.#lookUp(request, place);
      if (await within(PATIENCE_MS, asking)) {
        const found = await asking;
        if (found.said !== "hit") return { said: found.said === "miss" ? "miss" : "skip" };
        const { tensors } = decodeFrame(found.answer);
        request.budget?.admitted(found.rates);
        return { said: "hit", tensors };
      }
    } catch {
      // Redis is away or full, which admission tells.
    }
    this.#restsUntil = performance.now() + REST_MS;
    return { said: "skip" };
  }

  async #lookUp(request: InferenceRequest, place: CachePlace): Promise<LookedUp> {
    const { budget } = request;
    if (budget !== undefined && this.#settings.redis.isCluster) {
      await this.#settings.shares.prepare({ models: [], tenants: [], quotas: budget.quotas });
    }
    return lookUp(this.#settings.redis, place, this.#ownerOf(request, place));
  }

  #ownerOf({ model, tenant, budget, inputs }: InferenceRequest, { bucket }: CachePlace): HitOwner | undefined {
    if (budget === undefined) return undefined;
    const { redis, buckets, shares, usageDays } = this.#settings;
    const { usage, quotas = [] } = budget;
    const bytesIn = inputs.reduce((sum, { data }) => sum + data.length, 0);
    return {
      rates: budget.ratesIn({ redis, buckets }, bucket),
      quotas: quotas.map((quota) => ({ ...quota, most: shares.quotaOf(bucket, quota) })),
      usage: usage && {
        key: usage.key,
        counts: usage.counts,
        of: `${modelTag({ bucket, model: model.name })}:${tenant}`,
        bytesIn,
        keptMs: usageDays * DAY_MS,
      },
    };
  }

  /** Keeps an answer once it has been sent: the loop comes to this after all that is ready now. */
  #keepLater(place: CachePlace, tensors: readonly Tensor[], counts: ModelCacheCounts): void {
    const bytes = tensors.reduce((sum, { data }) => sum + data.length, 0);
    const isAlone = this.#keeping.size === 0;
    const isTooMuch = this.#keeping.size >= KEEPING.answers || this.#keepingBytes + bytes > KEEPING.bytes;
    if (bytes > this.#mostBytes * LARGEST_PART || (isTooMuch && !isAlone) || this.#keeping.has(place.digest)) return;
    this.#keeping.add(place.digest);
    this.#keepingBytes += bytes;
    void this.#keep(place, tensors, counts).finally(() => {
      this.#keeping.delete(place.digest);
      this.#keepingBytes -= bytes;
    });
  }

  async #keep(place: CachePlace, tensors: readonly Tensor[], counts: ModelCacheCounts): Promise<void> {
    await realWorld.turn();
    const { forLarge, ttlMs } = this.#settings;
    const since = performance.now();
    try {
      await keepAnswer(forLarge, place, encodeFrame({}, tensors), { mostBytes: this.#mostBytes, ttlMs });
      counts.kept(performance.now() - since);
    } catch {
      // The next equal request runs, too.
    }
  }
}

function bytesOf({ inputs }: InferenceRequest): number {
  return inputs.reduce((sum, { data }) => sum + data.length, 0);
}
