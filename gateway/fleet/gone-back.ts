/**
 * Redis has gone back in time: it has lost data that it had acknowledged, as after a failover to a
 * replica that had not received the data, or a restart from an older copy. Nothing can bring the
 * data back, so the log and `GET /v2/fleet` say so.
 */
import type { Logger } from "pino";
import { cells } from "#shared/metrics/cells.js";

export class GoneBack {
  readonly #log: Logger;
  #times = 0;
  #lostCalls = 0;
  #lastAt = "";

  readonly #total = cells.counter("baton_gone_back_total");

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * @param lost numbers of the last admission call that Redis had answered, and that Redis knows
   * now
   * @param bucket the bucket of that call, in a Redis Cluster
   */
  note({ acknowledged, last }: { readonly acknowledged: number; readonly last: number }, bucket?: number): void {
    this.#times++;
    cells.add(this.#total);
    this.#lostCalls += acknowledged - last;
    this.#lastAt = new Date().toISOString();
    this.#log.error({ bucket, acknowledged, last }, `redis has gone back in time: ${WHAT}`);
  }

  /** The part of `GET /v2/fleet`; undefined if this gateway has noticed no loss. */
  describe() {
    if (this.#times === 0) return undefined;
    const error = `Redis has gone back in time: ${WHAT}`;
    return { times: this.#times, lost_calls: this.#lostCalls, last_at: this.#lastAt, error };
  }
}

const WHAT =
  "it has lost admissions that it had acknowledged. Requests may be gone, and sequences may go on from an older state";
