/**
 * Takes the engine's records to the log, and from the log to the readers, in that order: a token that a client has seen is in the log. While one script runs the next
 * records gather, so a slow Redis makes calls larger, not more.
 */
import type { Logger } from "pino";
import { storeOutcome, outcomeOf } from "#shared/contract/outcome.js";
import { InferenceError } from "#shared/errors.js";
import { retrying } from "#shared/retry.js";
import { Signal } from "#shared/signal.js";
import type { Settled } from "../batch/execute.js";
import { settle, type Settler } from "../batch/settle.js";
import { publishTokens } from "../emit/tokens.js";
import { appendTokens, type Appended } from "../queue/append-tokens.js";
import type { StreamQueue } from "../queue/lane.js";
import type { Steadiness } from "../intake/steadiness.js";
import type { Active } from "./active.js";
import { errorRecord, failed, succeed } from "./settlement.js";
import { heedsWanted, nobodyReads } from "./wanted.js";

interface Pending {
  readonly first: number;
  readonly records: string[];
  /** With the final record: how its request ends. */
  ending: Settled | undefined;
}

export interface CommitterSettings {
  readonly queue: StreamQueue;
  readonly settler: Settler;
  readonly steadiness: Steadiness;
  readonly log: Logger;
  /** Nothing more of this request is wanted from the engine. */
  readonly closed: (active: Active) => void;
  /** The request is no longer this worker's. */
  readonly gone: (active: Active) => void;
}

export class Committer {
  /** Notified when the lag has shrunk. */
  readonly caughtUp = new Signal();
  readonly #settings: CommitterSettings;
  #pending = new Map<Active, Pending>();
  #working: Promise<void> | undefined;
  readonly #settling = new Set<Promise<void>>();
  #lag = 0;

  constructor(settings: CommitterSettings) {
    this.#settings = settings;
  }

  /** Iterations whose records wait for the script that runs now. */
  get lag(): number {
    return this.#lag;
  }

  /** A record as the engine gave it. @param ending with the final one. */
  push(active: Active, index: number, record: string, ending?: Settled): void {
    const pending = this.#pending.get(active) ?? { first: index, records: [], ending: undefined };
    pending.records.push(record);
    pending.ending = ending;
    this.#pending.set(active, pending);
  }

  /** The request ends with this error, after what the engine has given so far. */
  fail(active: Active, index: number, error: InferenceError): void {
    this.#close(active);
    this.push(active, index, errorRecord(index, error), failed(active.held, error));
  }

  /** It has an outcome already: the commit changes nothing, and acknowledges the entry. */
  acknowledge(active: Active): void {
    const never = storeOutcome(outcomeOf(new InferenceError("cancelled", "the request has ended")));
    this.settle(active, succeed(active.held, never, undefined));
  }

  /** Its log is complete, or it needs none: only the outcome is left. */
  settle(active: Active, settled: Settled): void {
    this.#close(active);
    const { settler, gone, log } = this.#settings;
    const commit = async () => {
      try {
        await settle(settler, [settled]);
      } catch (error) {
        // Its log is sealed, so whoever takes the entry over commits the same outcome.
        log.error({ error: String(error) }, "commit failed; it will be tried again");
      }
      gone(active);
      this.#settling.delete(done);
    };
    const done = commit();
    this.#settling.add(done);
  }

  /** An iteration's records are pushed. */
  flush(): void {
    this.#lag++;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  /** Everything pushed so far is in the log and settled, or given up. */
  async drained(): Promise<void> {
    while (this.#pending.size > 0 || this.#working !== undefined) {
      this.flush();
      await this.#working;
    }
    await Promise.all(this.#settling);
  }

  async #work(): Promise<void> {
    while (this.#pending.size > 0) {
      const batch = [...this.#pending];
      this.#pending = new Map();
      this.#lag = 0;
      this.caughtUp.notify();
      await this.#append(batch);
    }
    this.#lag = 0;
    this.caughtUp.notify();
  }

  async #append(batch: readonly (readonly [Active, Pending])[]): Promise<void> {
    const { queue, settler, steadiness, gone, log } = this.#settings;
    const appends = batch.map(([{ held }, { first, records, ending }]) => {
      const { entry, request } = held.delivery;
      return { entry, request, first, records, final: ending !== undefined };
    });
    let words: Appended[];
    try {
      words = await retrying(() => appendTokens(queue, appends, { heedWanted: heedsWanted(steadiness) }), {
        budgetMs: settler.budgetMs,
      });
    } catch (error) {
      log.error({ requests: batch.length, error: String(error) }, "append failed; the streams go on elsewhere");
      for (const [active] of batch) {
        this.#close(active);
        this.#pending.delete(active);
        gone(active);
      }
      return;
    }
    for (const [i, [active, pending]] of batch.entries()) this.#said(words[i] ?? "lost", active, pending);
  }

  #said(word: Appended, active: Active, { first, records, ending }: Pending): void {
    const { queue, settler, gone, log } = this.#settings;
    const { request } = active.held.delivery;
    if (word === "appended") {
      publishTokens(settler.bus, active.tenant, queue.lane, request, records);
      if (ending !== undefined) this.settle(active, ending);
      return;
    }
    // What came after the refused records continues what is not there.
    this.#pending.delete(active);
    switch (word) {
      case "lost":
        log.warn({ request }, "append refused: the stream was taken over");
        this.#close(active);
        return gone(active);
      case "ended":
        return this.acknowledge(active);
      case "unwanted":
        return this.fail(active, first, nobodyReads());
      case "gap":
        return this.settle(active, failed(active.held, new InferenceError("request_lost", "the stream's log is gone")));
    }
  }

  #close(active: Active): void {
    if (active.closed) return;
    active.closed = true;
    this.#settings.closed(active);
  }
}
