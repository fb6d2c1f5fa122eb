/**
 * In which buckets Redis takes requests now. One server takes requests in all buckets or in none.
 * In a Cluster each master has buckets of its own, and one may be away while the others are there.
 */
import type { Logger } from "pino";
import { writeRefusal } from "#shared/queue/admission/write-refusal.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { dropIfSilent, masterFor, type RedisClient } from "#shared/redis/connect.js";
import { within } from "#shared/retry.js";
import type { World } from "#shared/world.js";

/** Buckets whose requests Redis cannot admit now, and why. */
export interface Unserved {
  readonly buckets: readonly number[];
  /** In words, without the answer of Redis. */
  readonly reason: string;
  /**
   * The answer of Redis; undefined if the gateway cannot ask Redis. The first word names the
   * reason.
   */
  readonly said: string | undefined;
}

/** A server that has not answered after this long, in ms, counts as away until it does. */
export const PATIENCE_MS = 1_000;

export class BucketWatch {
  readonly #redis: RedisClient;
  readonly #world: World;
  readonly #log: Logger;
  readonly #buckets: readonly number[];
  #unserved: readonly Unserved[] = [];
  /** The state in the last line of the log. */
  #told: readonly Unserved[] = [];

  constructor(redis: RedisClient, buckets: number, log: Logger, world: World) {
    this.#redis = redis;
    this.#world = world;
    this.#log = log;
    this.#buckets = Array.from({ length: buckets }, (_, bucket) => bucket);
  }

  /** As of the last look. */
  get unserved(): readonly Unserved[] {
    return this.#unserved;
  }

  /** Whether Redis can admit requests of some bucket. */
  get servesAny(): boolean {
    return countOf(this.#unserved) < this.#buckets.length;
  }

  /** Asks each server once. */
  async look(): Promise<void> {
    const found = await Promise.all(this.#byServer().map((buckets) => this.#ask(buckets)));
    this.#unserved = found.flatMap((one) => one ?? []);
    this.#tell(this.#unserved);
  }

  /** Divides the buckets by the server that has them, as far as the client knows. */
  #byServer(): number[][] {
    if (!this.#redis.isCluster) return [[...this.#buckets]];
    const groups = new Map<unknown, number[]>();
    for (const bucket of this.#buckets) {
      const server = masterFor(this.#redis, bucketTag(bucket));
      const others = groups.get(server);
      if (others === undefined) groups.set(server, [bucket]);
      else others.push(bucket);
    }
    return [...groups.values()];
  }

  /** @returns undefined if Redis takes requests of these buckets */
  async #ask(buckets: readonly number[]): Promise<Unserved | undefined> {
    const [first = 0] = buckets;
    const away: Unserved = { buckets, reason: "Redis cannot be reached there", said: undefined };
    try {
      const asked = writeRefusal(this.#redis, bucketTag(first));
      if (!(await within(PATIENCE_MS, asked, this.#world))) {
        asked.catch((error: unknown) => dropIfSilent(this.#redis, error));
        return away;
      }
      const said = await asked;
      if (said === undefined) return undefined;
      return { buckets, reason: "Redis refuses writes there", said };
    } catch (error) {
      dropIfSilent(this.#redis, error);
      return away;
    }
  }

  /** Logs only a change: nothing as long as the same buckets are away for the same reason. */
  #tell(now: readonly Unserved[]): void {
    const [first] = now;
    // The connection's own listener logs that the link to the only server is cut.
    if (!this.#redis.isCluster && first !== undefined && first.said === undefined) return;
    const before = this.#told;
    if (textOf(before) === textOf(now)) return;
    this.#told = now;
    const facts = this.#redis.isCluster ? { unserved: now, buckets: this.#buckets.length } : { error: first?.said };
    if (first === undefined) this.#log.info("redis takes writes again: ready");
    else if (!this.servesAny) this.#log.warn(facts, "redis refuses writes: not ready, nothing can be admitted");
    else this.#log.warn(facts, "a part of redis takes no writes: requests of these buckets wait, the others go on");
  }
}

function countOf(unserved: readonly Unserved[]): number {
  return unserved.reduce((count, { buckets }) => count + buckets.length, 0);
}

function textOf(unserved: readonly Unserved[]): string {
  const texts = unserved.map(({ buckets, said }) => `${buckets.join()} ${said?.split(" ", 1)[0]}`);
  return texts.sort().join("\n");
}
