/**
 * Takes the engine's records to the log, and from there to the readers. In that order, a token that
 * a client has seen is in the log. While one script runs, the next records gather, so a slow Redis
 * makes calls larger, not more frequent.
 */
import type { Logger } from "pino";
import { boot } from "#shared/boot.js";
import { writeTimings } from "#shared/contract/timings.js";
import { storeOutcome, outcomeOf, readOutcome } from "#shared/contract/outcome.js";
import { fixedError, type InferenceError } from "#shared/errors.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { callGroups } from "#shared/redis/slots.js";
import { retrying } from "#shared/retry.js";
import { stopwatch } from "#shared/metrics/stopwatch.js";
import { Signal } from "#shared/signal.js";
import { settle, type Settled, type Settler } from "../lane/settle.js";
import { spentOf } from "../lane/spent.js";
import { appendTokens, type Appended } from "#shared/queue/work/streams/append-tokens.js";
import type { StreamQueue } from "#shared/queue/work/lane.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import type { StreamCounts } from "./counts.js";
import type { TokenPublisher } from "./publisher.js";
import type { Stream } from "./stream.js";
import { errorRecord, failed, succeeded } from "./settlement.js";
import { marksCount, nobodyReads } from "./unread.js";

/** Records of one stream that wait for the next script. */
interface Pending {
  /** Index of the first of `records`. */
  readonly first: number;
  readonly records: string[];
  /** The number of tokens in the records, and the bytes of the records. */
  tokens: number;
  bytes: number;
  /** The end of the stream's request; set with the final record. */
  ending: Settled | undefined;
}

/** A record, for the log. */
export interface LogRecord {
  readonly index: number;
  readonly record: string;
  /** The size of the record. */
  readonly bytes: number;
  /** The number of tokens that the record adds. */
  readonly tokens: number;
}

/** The owner of the streams, which is the loop. The committer reports the fate of each stream. */
export interface StreamOwner {
  /**
   * The engine must compute no more of this stream. A second call for the same stream does nothing.
   */
  close(stream: Stream): void;
  /**
   * A closed stream no longer belongs to this worker: its outcome is committed, or its entry lost.
   */
  release(stream: Stream): void;
  /** A closed stream may still belong to this worker, and needs another try. */
  leave(stream: Stream): void;
}

export interface CommitterSettings {
  readonly queue: StreamQueue;
  readonly settler: Settler;
  readonly publisher: TokenPublisher;
  readonly counts: StreamCounts;
  readonly outageGuard: OutageGuard;
  /** Whether outcomes say how long their requests waited and ran, and in which worker. */
  readonly timings: boolean;
  readonly owner: StreamOwner;
  readonly log: Logger;
}

/**
 * Time of appends to a stream, in ms, after which Redis checks again that the stream is wanted. A
 * check with each token would be a fifth of Redis's work for tokens. Gateways mark streams for
 * seconds.
 */
const SEEN_MS = 200;

export class Committer {
  /** Gets a notification when the lag has shrunk. */
  readonly caughtUp = new Signal();
  readonly #settings: CommitterSettings;
  #pending = new Map<Stream, Pending>();
  /** When Redis last found that a stream is wanted, on `performance.now()`'s clock. */
  readonly #seenAt = new WeakMap<Stream, number>();
  /** Settles after the last script call, when no record is pending; undefined without a call. */
  #working: Promise<void> | undefined;
  /** Commits of outcomes without an answer yet. */
  readonly #settling = new Set<Promise<void>>();
  #lag = 0;

  constructor(settings: CommitterSettings) {
    this.#settings = settings;
  }

  /** Iterations whose records wait for the current script. */
  get lag(): number {
    return this.#lag;
  }

  /**
   * Takes the next record of a stream.
   * @param ending the end of the request, with the final record
   */
  push(stream: Stream, { index, record, bytes, tokens }: LogRecord, ending?: Settled): void {
    const pending = this.#pending.get(stream) ?? { first: index, records: [], tokens: 0, bytes: 0, ending: undefined };
    pending.records.push(record);
    pending.tokens += tokens;
    pending.bytes += bytes;
    pending.ending = ending;
    this.#pending.set(stream, pending);
  }

  /** Ends the request with this error, after the engine's records so far. */
  fail(stream: Stream, index: number, error: InferenceError): void {
    this.#settings.owner.close(stream);
    const record = errorRecord(index, error);
    this.push(stream, { index, record, bytes: Buffer.byteLength(record), tokens: 0 }, failed(stream.held, error));
  }

  /**
   * Removes the entry of a request that already has an outcome: the commit only acknowledges the
   * entry.
   */
  acknowledge(stream: Stream): void {
    const never = storeOutcome(outcomeOf(fixedError("cancelled", "alreadyEnded")));
    this.settle(stream, succeeded(stream.held, never, undefined));
  }

  /** Commits the outcome of a stream whose log is complete, or that needs no log. */
  settle(stream: Stream, settled: Settled): void {
    this.#settings.owner.close(stream);
    const { settler, publisher, counts, owner, log } = this.#settings;
    const commit = async () => {
      try {
        await publisher.complete(stream);
        const { held, begunAt, ranMs, bytesOut } = stream;
        const { admittedAt } = held;
        const generated = { begunAt, ranMs };
        const spent = spentOf(held, ranMs, bytesOut);
        const fates = await settle(settler, [{ ...settled, spent, admittedAt, generated }]);
        if (fates.committed > 0) counts.ended(stream, settled, stopwatch());
        owner.release(stream);
      } catch (error) {
        // The log is sealed, so any worker that continues the entry commits the same outcome.
        log.error({ error: String(error) }, "commit failed; it will be tried again");
        owner.leave(stream);
      }
      this.#settling.delete(done);
    };
    const done = commit();
    this.#settling.add(done);
  }

  /** Begins to append. To be called after all records of an iteration have been pushed. */
  flush(): void {
    this.#lag++;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  /** Resolves when each pushed record is in the log and settled, or its stream is given up. */
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

  /** In a Cluster, each bucket's streams have a call of their own. */
  async #append(batch: readonly (readonly [Stream, Pending])[]): Promise<void> {
    const slotKeyOf = ([{ held }]: (typeof batch)[number]) => bucketTag(held.delivery.bucket);
    const groups = callGroups(this.#settings.queue.redis, batch, slotKeyOf);
    await Promise.all(groups.map((some) => this.#appendTogether(some)));
  }

  /**
   * The engine waits for the append. If an append takes too long in a Cluster, the worker gives up
   * its streams, so that streams of other buckets continue. A worker takes the streams back when
   * Redis can write them.
   */
  async #appendTogether(batch: readonly (readonly [Stream, Pending])[]): Promise<void> {
    const { queue, settler, outageGuard, timings, owner, log } = this.#settings;
    const now = performance.now();
    const appends = batch.map(([stream, { first, records, ending }]) => {
      const { lane, entry, tenant, request } = stream.held.delivery;
      const seen = now - (this.#seenAt.get(stream) ?? -Infinity) < SEEN_MS;
      if (!seen) this.#seenAt.set(stream, now);
      const final = ending !== undefined;
      const note = final && timings ? noteOf(stream) : undefined;
      return { lane, entry, tenant, request, first, records, final, note, seen };
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
    const appendedAt = stopwatch();
    for (const [i, [stream, pending]] of batch.entries()) this.#handle(words[i] ?? "lost", stream, pending, appendedAt);
  }

  #countResponses(stream: Stream, first: number, records: number, ending: Settled | undefined, now: number): void {
    const report = this.#settings.settler.counts?.report;
    for (let i = 0; i < records; i++) {
      const how = i === records - 1 && ending !== undefined ? endOf(ending) : "success";
      report?.responded(first + i, how, i === 0 ? now - stream.respondedAt : 0);
    }
    stream.respondedAt = now;
  }

  /** @param now when the script had answered */
  #handle(word: Appended, stream: Stream, pending: Pending, now: number): void {
    const { owner, publisher, counts, log } = this.#settings;
    const { first, records, ending } = pending;
    const { request } = stream.held.delivery;
    if (word === "appended") {
      counts.appended(stream, { ...pending, records: records.length }, now);
      this.#countResponses(stream, first, records.length, ending, now);
      publisher.publish(stream, first, records, ending !== undefined);
      if (ending !== undefined) this.settle(stream, ending);
      return;
    }
    // The log lacks the refused records, so later records have no place in it.
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

/** The timings of a stream at this worker. */
function noteOf({ held, figures, begunAt, ranMs }: Stream): string {
  const { joinedAt = begunAt } = figures;
  return writeTimings({ queueMs: joinedAt - held.admittedAt, runMs: ranMs, boot });
}

/** How the last response of a stream counts. */
function endOf({ outcome }: Settled): "success" | "fail" | "cancel" {
  if (outcome.kind !== "error") return "success";
  const read = readOutcome(outcome.kind, outcome.body);
  return read.kind === "error" && read.code === "cancelled" ? "cancel" : "fail";
}
