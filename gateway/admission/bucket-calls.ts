/**
 * The admission calls of a bucket, or of all buckets outside of a Redis Cluster. Calls with small
 * requests run beside calls with a large request. A large request takes a connection for as long as
 * its bytes take, and Redis for milliseconds; only steps of its own sequence wait for that.
 */
import type { CallLimits } from "#shared/chunks.js";
import { CALL_LIMITS, type Admission, type Applicant, type Terms } from "#shared/queue/admission/admit.js";
import { bytesOf } from "#shared/queue/pieces/job.js";
import { callsKey } from "#shared/queue/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { realWorld, type World } from "#shared/world.js";
import { CallLine, type LostCalls, type Place, type Unwritable, type Waiting } from "./call-line.js";
import { Turns, type Size } from "./turns.js";

export interface BucketCallsSettings {
  readonly redis: RedisClient;
  /** For large requests alone. */
  readonly forLarge: RedisClient;
  readonly terms: Terms;
  /** Undefined outside of a Cluster. */
  readonly bucket: number | undefined;
  readonly onGoneBack: (lost: LostCalls) => void;
  readonly world?: World;
  /** Limits of one call; a request with more bytes is large. */
  readonly limits?: Required<CallLimits>;
}

export class BucketCalls {
  readonly #turns: Turns<Waiting>;
  readonly #lines: Readonly<Record<Size, CallLine>>;

  constructor(settings: BucketCallsSettings) {
    const { redis, forLarge, terms, bucket, onGoneBack, world = realWorld, limits = CALL_LIMITS } = settings;
    const turns = (this.#turns = new Turns<Waiting>(limits));
    const of = { terms, onGoneBack, turns, world };
    const small = callsKey(terms.gateway, bucket);
    const large = callsKey(`${terms.gateway}:large`, bucket);
    this.#lines = {
      small: new CallLine({ ...of, redis, record: small, size: "small", onFree: () => this.#lines.large.start() }),
      large: new CallLine({
        ...of,
        redis: forLarge,
        record: large,
        size: "large",
        onFree: () => this.#lines.small.start(),
      }),
    };
  }

  /**
   * @throws the Redis client's error if the gateway does not know whether Redis admitted the
   * request
   */
  admit(applicant: Applicant, { order, since }: Place): Promise<Admission | Unwritable> {
    return new Promise((resolve, reject) => {
      const { tenant } = applicant;
      const bytes = bytesOf(applicant);
      const sequence = applicant.sequence?.name;
      const { weight } = applicant.waiting ?? {};
      const waiting = { order, since, tenant, weight, sequence, bytes, applicant, resolve, reject };
      this.#turns.add(waiting);
      const size = this.#turns.sizeOf(waiting);
      this.#lines[size].start();
      // A step may have to wait for the end of a call of the other kind. After the gateway gave
      // such a call up, the line of that kind asks for its end only if a request waits.
      if (sequence !== undefined) this.#lines[size === "small" ? "large" : "small"].start();
    });
  }

  /**
   * Does the work that a step needs before the step comes again. Later steps of the sequence wait
   * until the work ends. If the step comes again at once after that, they also stay behind the
   * step.
   */
  async prepare<T>({ tenant, sequence }: Applicant, { order }: Place, work: () => Promise<T>): Promise<T> {
    if (sequence === undefined) return work();
    const release = this.#turns.holdBehind({ tenant, sequence: sequence.name, order });
    try {
      return await work();
    } finally {
      release();
      for (const line of Object.values(this.#lines)) line.start();
    }
  }

  /** See `CallLine.confirm`. */
  confirm(): void {
    for (const line of Object.values(this.#lines)) line.confirm();
  }

  /** See `CallLine.overtake`. */
  async overtake(budgetMs: number): Promise<void> {
    await Promise.all(Object.values(this.#lines).map((line) => line.overtake(budgetMs)));
  }
}
