/**
 * Takes the engine's records to the log, and from there to the readers, in that order: a token that
 * a client has seen is in the log. While one script runs the next records gather, so a slow Redis
 * makes calls larger, not more.
 */
import type { Logger } from "pino";
import { storeOutcome, outcomeOf } from "#shared/contract/outcome.js";
import { fixedError, type InferenceError } from "#shared/errors.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { callGroups } from "#shared/redis/slots.js";
import { retrying } from "#shared/retry.js";
import { Signal } from "#shared/signal.js";
import { settle, type Settled, type Settler } from "../lane/settle.js";
import { appendTokens, type Appended } from "#shared/queue/work/append-tokens.js";
import type { StreamQueue } from "#shared/queue/work/lane.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import type { TokenPublisher } from "./publisher.js";
import type { Stream } from "./stream.js";
import { errorRecord, failed, succeeded } from "./settlement.js";
import { marksCount, nobodyReads } from "./unread.js";

/** Records of one stream that wait for the next script. */
interface Pending {
  /** Index of the first of `records`. */
  readonly first: number;
  readonly records: string[];
  /** How the stream's request ends; set with its final record. */
  ending: Settled | undefined;
}

/** Whose streams they are: the loop, which is told what becomes of them. */
export interface StreamOwner {
  /**
   * Nothing more of this stream is wanted from the engine. A second call for the same stream does
   * nothing.
   */
  close(stream: Stream): void;
  /**
   * The stream, which is closed, is no longer this worker's: its outcome is committed, or its entry
   * lost.
   */
  release(stream: Stream): void;
  /** The stream, which is closed, may go on being this worker's, and is to be tried again. */
  leave(stream: Stream): void;
}

export interface CommitterSettings {
  readonly queue: StreamQueue;
  readonly settler: Settler;
  readonly publisher: TokenPublisher;
  readonly outageGuard: OutageGuard;
  readonly owner: StreamOwner;
  readonly log: Logger;
}

/**
 * For how long a stream is appended to, in ms, before Redis is asked again whether somebody wants
 * it. Asking with each token would be a fifth of what tokens cost Redis, and gateways mark streams
 * for seconds.
 */
const SEEN_MS = 200;

export class Committer {
  /** Notified when the lag has shrunk. */
  readonly caughtUp = new Signal();
  readonly #settings: CommitterSettings;
  #pending = new Map<Stream, Pending>();
  /** When Redis last said that a stream is wanted, on `performance.now()`'s clock. */
  readonly #seenAt = new WeakMap<Stream, number>();
  /**
   * The script calls of now and later, until nothing is pending; undefined while there is nothing
   * to do.
   */
  #working: Promise<void> | undefined;
  /** Commits of outcomes that have not been answered. */
  readonly #settling = new Set<Promise<void>>();
  #lag = 0;

  constructor(settings: CommitterSettings) {
    this.#settings = settings;
  }

  /** Iterations whose records wait for the script that runs now. */
  get lag(): number {
    return this.#lag;
  }

  /**
   * Takes a record that the engine gave.
   * @param ending how the request ends, with the final record
   */
  push(stream: Stream, index: number, record: string, ending?: Settled): void {
    const pending = this.#pending.get(stream) ?? { first: index, records: [], ending: undefined };
    pending.records.push(record);
    pending.ending = ending;
    this.#pending.set(stream, pending);
  }

  /** Ends the request with this error, after what the engine has given so far. */
  fail(stream: Stream, index: number, error: InferenceError): void {
    this.#settings.owner.close(stream);
    this.push(stream, index, errorRecord(index, error), failed(stream.held, error));
  }

  /**
   * Removes the entry of a request that has an outcome already: the commit only acknowledges it.
   */
  acknowledge(stream: Stream): void {
    const never = storeOutcome(outcomeOf(fixedError("cancelled", "alreadyEnded")));
    this.settle(stream, succeeded(stream.held, never, undefined));
  }

  /** Commits the outcome of a stream whose log is complete, or that needs none. */
  settle(stream: Stream, settled: Settled): void {
    this.#settings.owner.close(stream);
    const { settler, publisher, owner, log } = this.#settings;
    const commit = async () => {
      try {
        await publisher.complete(stream);
        await settle(settler, [settled]);
        owner.release(stream);
      } catch (error) {
        // Its log is sealed, so whoever goes on with the entry commits the same outcome.
        log.error({ error: String(error) }, "commit failed; it will be tried again");
        owner.leave(stream);
      }
      this.#settling.delete(done);
    };
    const done = commit();
    this.#settling.add(done);
  }

  /** Begins to append. It is called once all records of an iteration have been pushed. */
  flush(): void {
    this.#lag++;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  /** Resolves when everything pushed so far is in the log and settled, or given up. */
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

  /** In a Cluster the streams of each bucket are appended to by themselves. */
  async #append(batch: readonly (readonly [Stream, Pending])[]): Promise<void> {
    const slotKeyOf = ([{ held }]: (typeof batch)[number]) => bucketTag(held.delivery.bucket);
    const groups = callGroups(this.#settings.queue.redis, batch, slotKeyOf);
    await Promise.all(groups.map((some) => this.#appendTogether(some)));
  }

  /**
   * The engine waits for the append. Where that takes too long in a Cluster, the streams are given
   * up, so that those of other buckets go on: a worker takes them back when they can be written.
   */
  async #appendTogether(batch: readonly (readonly [Stream, Pending])[]): Promise<void> {
    const { queue, settler, outageGuard, owner, log } = this.#settings;
    const now = performance.now();
    const appends = batch.map(([stream, { first, records, ending }]) => {
      const { lane, entry, tenant, request } = stream.held.delivery;
      const seen = now - (this.#seenAt.get(stream) ?? -Infinity) < SEEN_MS;
      if (!seen) this.#seenAt.set(stream, now);
      return { lane, entry, tenant, request, first, records, final: ending !== undefined, seen };
    });
    let words: Appended[];
    try {
      words = await retrying(() => appendTokens(queue, appends, { heedWanted: marksCount(outageGuard) }), {
        budgetMs: settler.patienceMs,
      });
    } catch (error) {
      log.error({ requests: batch.length, error: String(error) }, "append failed; the streams will be tried again");
      for (const [stream] of batch) {
        owner.close(stream);
        this.#pending.delete(stream);
        owner.leave(stream);
      }
      return;
    }
    for (const [i, [stream, pending]] of batch.entries()) this.#handle(words[i] ?? "lost", stream, pending);
  }

  #handle(word: Appended, stream: Stream, { first, records, ending }: Pending): void {
    const { owner, publisher, log } = this.#settings;
    const { request } = stream.held.delivery;
    if (word === "appended") {
      publisher.publish(stream, first, records, ending !== undefined);
      if (ending !== undefined) this.settle(stream, ending);
      return;
    }
    // Records that came after the refused ones continue what is not in the log.
    this.#pending.delete(stream);
    switch (word) {
      case "lost":
        log.warn({ request }, "append refused: the stream was taken over");
        owner.close(stream);
        return owner.release(stream);
      case "ended":
        return this.acknowledge(stream);
      case "unwanted":
        return this.fail(stream, first, nobodyReads());
      case "gap":
        return this.settle(stream, failed(stream.held, fixedError("request_lost", "logGone")));
    }
  }
}

/** An empty message tells readers to look into the log: the record is larger than NATS takes. */
