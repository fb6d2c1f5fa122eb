/**
 * The newest records of one request, for all its readers at this gateway. A live stream has one
 * subscription, and at most one read of the log under way.
 *
 * Readers get a message that continues the stream as it comes; its record is unconfirmed. The
 * gateway compares unconfirmed records with the log before readers get the final record, and before
 * there are more of them than the ring holds. If the log has other records, the stream ends with an
 * error. Any other message (doubled, early, not a worker's, a final record) only makes the gateway
 * read the log. Records that come early during that read wait for their turn in a buffer.
 *
 * While the gateway cannot read Redis, readers get well-formed records that continue the stream
 * without limit, also the final record. So a forger succeeds if he may publish on the subject,
 * guesses the request's id and the next index, and does so during such an outage. Afterwards the
 * gateway compares only the newest of these records with the log.
 */
import type { Logger } from "pino";
import type { RequestAddress } from "#shared/queue/address.js";
import { fixedError, type InferenceError } from "#shared/errors.js";
import { isTransient } from "#shared/retry.js";
import type { StreamRecord } from "./open-stream.js";
import type { LogReader } from "./log-reader.js";
import type { Page } from "#shared/queue/admission/read-logs.js";
import { recordOfMessage, isWellFormed, recordOf } from "./records.js";
import { countGap } from "./counts.js";
import { ReorderBuffer, Ring } from "./buffers.js";
import { pageStatus, type EmptyPage } from "./page-status.js";

/** Tells streams from the requests of tensor models, which have no log. */
export interface GeneratorLookup {
  /** @returns undefined if no worker serves the model any more */
  hasStreams(model: string): boolean | undefined;
}

export interface LiveStreamSettings {
  readonly address: RequestAddress;
  readonly logs: LogReader;
  readonly models: GeneratorLookup;
  readonly log: Logger;
}

/**
 * Why the gateway reads the log: for records from before its subscription, for records that did not
 * come as messages, or to compare unconfirmed records.
 */
type Reason = "start" | "news" | "check";

/** A stream fails when the gateway could not read Redis for this long, in ms. */
export const AWAY_MS = 60_000;
/** Pause between tries while the gateway cannot read Redis, in ms. */
const RETRY_MS = 100;
/** Most unconfirmed records before a read of the log: in number, in characters, and in ms. */
const CHECK = { records: 64, chars: 32_768, ms: 1_000 };
/** Spreads the comparisons, so that streams that began together do not compare together. */
let created = 0;

export class LiveStream {
  readonly address: RequestAddress;
  readonly #settings: LiveStreamSettings;
  readonly #ring: Ring;
  /** Functions to call whenever `from` may answer differently. */
  readonly #readers = new Set<() => void>();
  /**
   * The log has confirmed records below this index; the ring's records from this index on are
   * unconfirmed.
   */
  #confirmed: number;
  #unconfirmedChars = 0;
  /**
   * The gateway reads the log when this many records are unconfirmed: between half of
   * `CHECK.records` and all.
   */
  readonly #checkedAfter = CHECK.records / 2 + (created++ % (CHECK.records / 2));
  readonly #reorder = new ReorderBuffer();
  /** Why a read of the log is under way; undefined while none is. */
  #reading: Reason | undefined;
  /**
   * Since the last read of the log began: the highest index of a message that readers could not
   * get; Infinity after a message without an index.
   */
  #arrived = -1;
  /**
   * Start of the present outage of Redis, in ms on `performance.now()`'s clock; undefined without
   * one.
   */
  #awaySince: number | undefined;
  /** Readers can get the final record, or the log ended without one. */
  #over = false;
  #failure: InferenceError | undefined;
  /**
   * When the gateway last read the log, on the same clock; Infinity while the request may not be
   * admitted yet.
   */
  #readAt = Infinity;
  /** When the stream last noticed that readers got a message, on the same clock. */
  #receivedAt = -Infinity;
  /** Readers got a message since then. The hot path sets this and need not ask for the time. */
  #hasReceived = false;

  /** @param next the index after the last record of the log now */
  constructor(settings: LiveStreamSettings, next: number) {
    this.#settings = settings;
    this.address = settings.address;
    this.#ring = new Ring(next);
    this.#confirmed = next;
  }

  /**
   * Gives all records from `index` on, or says why there are none: `ahead`, they are not there yet;
   * `behind`, only the log still has them; `over`, the stream ended before.
   * @throws InferenceError when the stream has failed
   */
  from(index: number): readonly StreamRecord[] | "ahead" | "behind" | "over" {
    if (this.#failure !== undefined) throw this.#failure;
    if (index >= this.#ring.next) return this.#over ? "over" : "ahead";
    const records = this.#ring.from(index);
    return records.length > 0 ? records : "behind";
  }

  /** Whether a reader may begin at `index` without reading the log. */
  covers(index: number): boolean {
    return this.#failure === undefined && (index === this.#ring.next || this.#ring.at(index) !== undefined);
  }

  get isOver(): boolean {
    return this.#over || this.#failure !== undefined;
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  /** @param wake the stream calls this whenever `from` may answer differently */
  join(wake: () => void): void {
    this.#readers.add(wake);
  }

  leave(wake: () => void): void {
    this.#readers.delete(wake);
  }

  /** The request is in Redis: from now on silence makes the gateway read the log. */
  begin(): void {
    if (this.#readAt === Infinity) this.#readAt = performance.now();
  }

  /** Takes a message that came on the request's subject. */
  receive(message: Buffer): void {
    if (this.isOver) return;
    const record = recordOfMessage(message);
    const { next } = this.#ring;
    if (record !== undefined) {
      if (record.index < next) return;
      if (record.index === next && this.#canShowAtOnce() && this.#show(record)) {
        if (this.#awaySince !== undefined) this.#showReordered();
        this.#wake();
        if (this.#isCheckDue()) this.readLog("check");
        return;
      }
      if (this.#reading !== undefined || this.#awaySince !== undefined) this.#reorder.keep(record, next);
    }
    this.#arrived = Math.max(this.#arrived, record?.index ?? Infinity);
    if (this.#awaySince === undefined) this.readLog();
  }

  /**
   * Called every few ms.
   * @param now on `performance.now()`'s clock
   * @param silentMs after this many ms without a message or a read, the gateway reads the log
   */
  readLogIfSilent(now: number, silentMs: number): void {
    if (this.#hasReceived) this.#receivedAt = now;
    this.#hasReceived = false;
    const sinceRead = now - this.#readAt;
    if (this.#awaySince !== undefined) {
      if (sinceRead >= RETRY_MS) this.readLog();
    } else if (Math.min(sinceRead, now - this.#receivedAt) >= silentMs) this.readLog();
    else if (sinceRead >= CHECK.ms && this.#ring.next > this.#confirmed) this.readLog("check");
  }

  /** Reads the log, unless a read is under way. */
  readLog(reason: Reason = "news"): void {
    if (this.#reading !== undefined || this.isOver) return;
    this.#reading = reason;
    this.#arrived = -1;
    const from = this.#confirmed;
    const shown = this.#ring.next;
    this.#settings.logs.read(this.address, from).then(
      (page) => this.#applyPage(page, shown, reason),
      (error: unknown) => this.#readFailed(error),
    );
  }

  /**
   * @param shown the index after the last record that readers could get when the read began: the
   * log must hold all records below it
   */
  #applyPage(page: Page, shown: number, reason: Reason): void {
    this.#reading = undefined;
    this.#readAt = performance.now();
    this.#awaySince = undefined;
    const before = this.#ring.next;
    if (page.said === "records") {
      for (const json of page.records) this.#confirm(json, page.note, reason);
      if (!page.more && this.#confirmed < shown) this.#fail(forged());
    } else this.#applyStatus(page, shown);
    const learned = this.#ring.next > before;
    // Readers get the final record from the log always.
    if (reason === "news" && this.#ring.next - (this.#over ? 1 : 0) > before) countGap();
    this.#unconfirmedChars = this.#ring.charsFrom(this.#confirmed);
    this.#showReordered();
    this.#reorder.forget(Infinity);
    if (this.#ring.next !== before || this.isOver) this.#wake();
    if (this.#mustReadAgain(page, learned, reason)) this.readLog();
  }

  #mustReadAgain(page: Page, learned: boolean, reason: Reason): boolean {
    const { next } = this.#ring;
    if (this.#arrived >= next) return true;
    // During an outage of Redis, readers got more records than one comparison can take.
    if (next > this.#confirmed && this.#ring.at(this.#confirmed) === undefined) return true;
    if (reason === "check" || page.said !== "records") return false;
    // Only an empty page says whether the request still runs.
    return page.more || (!learned && next === this.#confirmed);
  }

  /** @param json the next record of the log */
  #confirm(json: string, note: string | undefined, reason: Reason): void {
    const index = this.#confirmed++;
    if (index === this.#ring.next) {
      const record = recordOf(index, json, note);
      this.#push(reason === "news" && !record.final ? { ...record, fillsGap: true } : record);
    } else if ((this.#ring.at(index)?.json ?? json) !== json) this.#fail(forged());
  }

  #push(record: StreamRecord): void {
    this.#ring.push(record);
    if (record.final) this.#over = true;
  }

  #applyStatus(page: EmptyPage, shown: number): void {
    const now = pageStatus(page, this.#confirmed, "running", this.#settings.models.hasStreams(this.address.model));
    // While a stream runs, the worker may have appended records after this read that came as
    // messages during the read. Once the stream has ended, no worker appends.
    const known = now.kind === "wait" ? shown : this.#ring.next;
    if (now.kind === "refused") this.#fail(now.error);
    else if (known > this.#confirmed) this.#fail(forged());
    else if (now.kind === "over") this.#over = true;
    else if (now.kind === "final") this.#push(now.record);
  }

  #readFailed(error: unknown): void {
    this.#reading = undefined;
    const now = performance.now();
    this.#readAt = now;
    this.#awaySince ??= now;
    const before = this.#ring.next;
    if (!isTransient(error)) {
      this.#settings.log.error({ error: String(error) }, "a stream's log cannot be read");
      this.#fail(fixedError("internal", "usual"));
    } else if (now - this.#awaySince >= AWAY_MS) {
      this.#fail(fixedError("unavailable", "stream"));
    } else {
      this.#showReordered();
      this.#reorder.forget(this.#ring.next);
    }
    if (this.#ring.next !== before || this.isOver) this.#wake();
  }

  #fail(error: InferenceError): void {
    this.#failure ??= error;
  }

  /** Gives readers the early messages whose turn has come. */
  #showReordered(): void {
    for (;;) {
      const record = this.#reorder.at(this.#ring.next);
      if (record === undefined || !this.#show(record)) return;
    }
  }

  /**
   * Gives readers a record of the next index, unconfirmed.
   * @returns false if the record must come from the log instead
   */
  #show(record: StreamRecord): boolean {
    const away = this.#awaySince !== undefined;
    if (!away && (record.final || !this.#ring.hasRoom(record.json.length, this.#confirmed))) return false;
    if (this.isOver || !isWellFormed(record)) return false;
    this.#push(record);
    this.#unconfirmedChars += record.json.length;
    this.#hasReceived = true;
    return true;
  }

  /**
   * Whether readers may get a message of the next index as it comes: no earlier message waits for a
   * read of the log.
   */
  #canShowAtOnce(): boolean {
    return this.#awaySince !== undefined || (isNoNews(this.#reading) && this.#arrived < this.#ring.next);
  }

  #isCheckDue(): boolean {
    if (this.#reading !== undefined || this.#awaySince !== undefined) return false;
    return this.#ring.next - this.#confirmed >= this.#checkedAfter || this.#unconfirmedChars >= CHECK.chars;
  }

  #wake(): void {
    for (const wake of this.#readers) wake();
  }
}

/** Whether a read of the log brings only records that readers have. */
function isNoNews(reason: Reason | undefined): boolean {
  return reason === undefined || reason === "check";
}

function forged(): InferenceError {
  return fixedError("state_lost", "otherThanLog");
}
