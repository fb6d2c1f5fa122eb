/**
 * Gathers what is to be admitted in one turn of the event loop: with many clients most of what a script call costs is the call. A call has one lane, hence one
 * Redis slot, and a bounded size, or it would hold up everybody's renewals.
 */
import { chunks } from "#shared/chunks.js";
import type { Lane } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { isTransient } from "#shared/retry.js";
import { admit, type Admission, type Applicant, type Terms } from "./admit.js";

interface Waiting {
  readonly lane: Lane;
  readonly applicant: Applicant;
  readonly resolve: (admission: Admission) => void;
  readonly reject: (error: unknown) => void;
}

const LIMITS = { bytes: 1_048_576, items: 64 };

export class Gatherer {
  readonly #redis: RedisClient;
  readonly #terms: Terms;
  #waiting: Waiting[] = [];

  constructor(redis: RedisClient, terms: Terms) {
    this.#redis = redis;
    this.#terms = terms;
  }

  /** @throws the Redis error */
  admit(lane: Lane, applicant: Applicant): Promise<Admission> {
    return new Promise((resolve, reject) => {
      // After what this turn still brings from other clients.
      if (this.#waiting.length === 0) setImmediate(() => this.#call());
      this.#waiting.push({ lane, applicant, resolve, reject });
    });
  }

  #call(): void {
    const byLane = new Map<string, Waiting[]>();
    for (const one of this.#waiting) {
      const name = `${one.lane.model}:${one.lane.version}:${one.lane.shard}`;
      const others = byLane.get(name);
      if (others === undefined) byLane.set(name, [one]);
      else others.push(one);
    }
    this.#waiting = [];
    for (const ofLane of byLane.values()) {
      for (const chunk of chunks(ofLane, ({ applicant }) => applicant.frame.length, LIMITS)) this.#admitAll(chunk);
    }
  }

  #admitAll(chunk: readonly [Waiting, ...Waiting[]]): void {
    const applicants = chunk.map(({ applicant }) => applicant);
    admit(this.#redis, chunk[0].lane, this.#terms, applicants).then(
      (admissions) => {
        for (const [i, { resolve }] of chunk.entries()) resolve(admissions[i] as Admission);
      },
      (error: unknown) => {
        // Redis answered that something is wrong with one of them, which must not cost the others: each again, alone.
        if (chunk.length > 1 && !isTransient(error)) {
          for (const one of chunk) this.#admitAll([one]);
        } else for (const { reject } of chunk) reject(error);
      },
    );
  }
}
