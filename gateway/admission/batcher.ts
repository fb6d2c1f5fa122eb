/**
 * Admits requests in few calls. One call with small requests is under way at a time, and one with a
 * large request. In a Redis Cluster each bucket has such a pair of calls, so a bucket without a
 * master holds up no other bucket.
 */
import type { Admission, Applicant, Terms } from "#shared/queue/admission/admit.js";
import { CALLS_KEPT_MS } from "#shared/queue/admission/admit.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import type { GoneBack } from "../fleet/gone-back.js";
import { BucketCalls } from "./bucket-calls.js";
import type { LostCalls, Place, Unwritable } from "./call-line.js";

/** How often the batcher checks whether to confirm calls, in ms. */
const LOOK_MS = 1_000;
/** An empty call confirms the last calls this long after the last confirmation, in ms. */
const CONFIRM_MS = CALLS_KEPT_MS / 3;

export class AdmissionBatcher {
  readonly #redis: RedisClient;
  readonly #forLarge: RedisClient;
  readonly #terms: Terms;
  readonly #world: World;
  readonly #goneBack: GoneBack | undefined;
  /** By bucket. Outside of a Cluster the only member has no bucket. */
  readonly #lines = new Map<number | undefined, BucketCalls>();
  #arrivals = 0;

  /**
   * @param terms `gateway` is the name of this start of the process; Redis numbers calls under it
   * @param goneBack gets a note if Redis has lost calls that it had acknowledged
   * @param forLarge a connection for large requests, so that small requests do not wait for their
   * bytes
   */
  constructor(redis: RedisClient, terms: Terms, goneBack?: GoneBack, forLarge = redis, world = realWorld) {
    this.#redis = redis;
    this.#forLarge = forLarge;
    this.#terms = terms;
    this.#goneBack = goneBack;
    this.#world = world;
  }

  /** The place of a request that comes now. */
  nextPlace(): Place {
    return { order: this.#arrivals++, since: this.#world.now() };
  }

  /**
   * Admits the request with the next call, behind requests that came before it.
   * @param place from `nextPlace`; the same place when the request has to come again
   * @throws the Redis client's error if the gateway does not know whether Redis admitted the
   * request
   */
  admit(applicant: Applicant, place: Place): Promise<Admission | Unwritable> {
    return this.#line(applicant.lane.bucket).admit(applicant, place);
  }

  /** See `BucketCalls.prepare`. */
  prepare<T>(applicant: Applicant, place: Place, work: () => Promise<T>): Promise<T> {
    return this.#line(applicant.lane.bucket).prepare(applicant, place, work);
  }

  /**
   * Makes all calls that may hold a request of this bucket harmless: after this resolves, they
   * admit no further request. Gives up after `budgetMs`.
   */
  overtake(bucket: number, budgetMs: number): Promise<void> {
    return this.#line(bucket).overtake(budgetMs);
  }

  /**
   * Asks Redis now and then, and after each new connection, whether Redis still knows of the last
   * calls. Runs until `signal` aborts.
   */
  async confirmWhileOpen(signal: AbortSignal): Promise<void> {
    let isDue = false;
    const mayBeAnother = () => (isDue = true);
    // A Cluster's client emits `refresh` each time after it reads which server has which slot.
    const event = this.#redis.isCluster ? "refresh" : "ready";
    this.#redis.on(event, mayBeAnother);
    let confirmedAt = this.#world.now();
    while (!signal.aborted) {
      await delay(LOOK_MS, signal, this.#world);
      if (!isDue && this.#world.now() - confirmedAt < CONFIRM_MS) continue;
      isDue = false;
      confirmedAt = this.#world.now();
      for (const line of this.#lines.values()) line.confirm();
    }
    this.#redis.off(event, mayBeAnother);
  }

  #line(ofBucket: number): BucketCalls {
    const bucket = this.#redis.isCluster ? ofBucket : undefined;
    let line = this.#lines.get(bucket);
    if (line === undefined) {
      const onGoneBack = (lost: LostCalls) => this.#goneBack?.note(lost, bucket);
      const shared = { redis: this.#redis, forLarge: this.#forLarge, terms: this.#terms, world: this.#world };
      line = new BucketCalls({ ...shared, bucket, onGoneBack });
      this.#lines.set(bucket, line);
    }
    return line;
  }
}
