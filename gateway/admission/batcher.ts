/**
 * Admits requests in few calls: of small requests one is under way at a time, and one of a large
 * one, or in a Redis Cluster so many for each bucket, so a bucket whose master is gone holds up no
 * other.
 */
import type { Admission, Applicant, Terms } from "#shared/queue/admission/admit.js";
import { CALLS_KEPT_MS } from "#shared/queue/admission/admit.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import type { GoneBack } from "../fleet/gone-back.js";
import { BucketCalls } from "./bucket-calls.js";
import type { LostCalls, Place, Unwritable } from "./call-line.js";

/** How often it is asked whether something is to be confirmed, in ms. */
const LOOK_MS = 1_000;
/** What no call has confirmed for so long is confirmed by an empty one, in ms. */
const CONFIRM_MS = CALLS_KEPT_MS / 3;

export class AdmissionBatcher {
  readonly #redis: RedisClient;
  readonly #forLarge: RedisClient;
  readonly #terms: Terms;
  readonly #world: World;
  readonly #goneBack: GoneBack | undefined;
  /** By bucket; outside of a Cluster there is one, without a bucket. */
  readonly #lines = new Map<number | undefined, BucketCalls>();
  #arrivals = 0;

  /**
   * @param terms its `gateway` is the name of this start of the process, under which calls are
   * numbered
   * @param goneBack is told where Redis has lost calls that it had acknowledged
   * @param forLarge a connection for large requests, so that others do not wait for their bytes
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
   * Admits the request with the next call, behind those that came before it.
   * @param place from `nextPlace`; the same one when the request has to come again
   * @throws the Redis client's error where it is not known whether the request was admitted
   */
  admit(applicant: Applicant, place: Place): Promise<Admission | Unwritable> {
    return this.#line(applicant.lane.bucket).admit(applicant, place);
  }

  /** See `BucketCalls.prepare`. */
  prepare<T>(applicant: Applicant, place: Place, work: () => Promise<T>): Promise<T> {
    return this.#line(applicant.lane.bucket).prepare(applicant, place, work);
  }

  /**
   * Makes all calls that may have taken a request of this bucket harmless: when it resolves, what
   * they have not admitted they never will. It gives up after `budgetMs`.
   */
  overtake(bucket: number, budgetMs: number): Promise<void> {
    return this.#line(bucket).overtake(budgetMs);
  }

  /**
   * Asks Redis now and then, and whenever it is connected to anew, whether it still knows of the
   * last calls. Runs until `signal` aborts.
   */
  async confirmWhileOpen(signal: AbortSignal): Promise<void> {
    let isDue = false;
    const mayBeAnother = () => (isDue = true);
    // A Cluster's client says `refresh` after each look at who serves which slot.
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
