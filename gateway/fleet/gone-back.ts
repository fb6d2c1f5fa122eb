/**
 * Redis has gone back in time: what it had acknowledged is gone, as after a failover to a replica
 * that had not received it, or a restart from an older copy. Nothing can bring it back, so it is
 * said, in the log and in `GET /v2/fleet`.
 */
import type { Logger } from "pino";

export class GoneBack {
  readonly #log: Logger;
  #times = 0;
  #lostCalls = 0;
  #lastAt = "";

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * @param lost numbers of the last admission call that Redis had answered, and that it knows now
   * @param bucket where it was noticed, in a Redis Cluster
   */
  note({ acknowledged, last }: { readonly acknowledged: number; readonly last: number }, bucket?: number): void {
    this.#times++;
    this.#lostCalls += acknowledged - last;
    this.#lastAt = new Date().toISOString();
    this.#log.error({ bucket, acknowledged, last }, `redis has gone back in time: ${WHAT}`);
  }

  /** What `GET /v2/fleet` shows; undefined where this gateway has noticed nothing. */
  describe() {
    if (this.#times === 0) return undefined;
    const error = `Redis has gone back in time: ${WHAT}`;
    return { times: this.#times, lost_calls: this.#lostCalls, last_at: this.#lastAt, error };
  }
}

const WHAT =
  "it has lost admissions that it had acknowledged. Requests may be gone, and sequences may go on from an older state";
