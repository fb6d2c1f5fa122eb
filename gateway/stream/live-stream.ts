/**
 * The newest records of one request, for all who read it at this gateway. It has one subscription,
 * and reads the log once at a time.
 *
 * A message that continues the stream is shown as it comes: it is unconfirmed. What is unconfirmed
 * is compared with the log before the final record is shown, and before it is more than a reader
 * who has fallen behind may hold. Where the log says otherwise, the stream ends with an error. Any
 * other message (doubled, out of order, not a worker's, a final record) is never shown itself: it
 * only says that there is something to read in the log.
 *
 * While Redis cannot be read, well-formed records that continue the stream are shown without limit,
 * the final one too. So a forger succeeds if he may publish on the subject, guesses the request's
 * id and the next index, and does so during such an outage. Of what was shown then, only the newest
 * records are compared with the log afterwards.
 */
import type { Logger } from "pino";
import type { RequestAddress } from "#shared/queue/address.js";
import { fixedError, type InferenceError } from "#shared/errors.js";
import { isTransient } from "#shared/retry.js";
import type { StreamRecord } from "./open-stream.js";
import type { LogReader } from "./log-reader.js";
import type { Page } from "#shared/queue/admission/read-logs.js";
import { recordOfMessage, isWellFormed, recordOf } from "./records.js";
import { ReorderBuffer, Ring } from "./buffers.js";
import { pageStatus, type EmptyPage } from "./page-status.js";

/** Tells streams from the requests of tensor models, which have no log. */
export interface GeneratorLookup {
  /** @returns undefined where nobody serves the model any more */
  isGenerator(model: string): boolean | undefined;
}

export interface LiveStreamSettings {
  readonly address: RequestAddress;
  readonly logs: LogReader;
  readonly models: GeneratorLookup;
  readonly log: Logger;
}

/**
 * Why the log is read: it may hold records that did not come as messages, or unconfirmed records
 * are to be compared.
 */
type Reason = "news" | "check";

/** A stream fails when Redis could not be read for this long. */
export const AWAY_MS = 60_000;
/** While Redis cannot be read, it is tried again after this pause. */
const RETRY_MS = 100;
/** Limits of what may be unconfirmed before the log is read: records, characters, and time. */
const CHECK = { records: 64, chars: 32_768, ms: 1_000 };
/** Spreads the comparisons: streams that began together are not all compared together. */
let created = 0;

export class LiveStream {
  readonly address: RequestAddress;
  readonly #settings: LiveStreamSettings;
  readonly #ring: Ring;
  /** They are called whenever `from` may answer differently. */
  readonly #readers = new Set<() => void>();
  /**
   * Records below this index were read in the log; those of the ring from it on are unconfirmed.
   */
  #confirmed: number;
  #unconfirmedChars = 0;
  /**
   * The log is read when this many records are unconfirmed: between half of `CHECK.records` and
   * all.
   */
  readonly #checkedAfter = CHECK.records / 2 + (created++ % (CHECK.records / 2));
  readonly #reorder = new ReorderBuffer();
  /** Why the log is being read now; undefined while it is not. */
  #reading: Reason | undefined;
  /**
   * The highest index claimed by a message that could not be shown since the last read of the log
   * began; endless after a message that claims none.
   */
  #arrived = -1;
  /**
   * Since when Redis cannot be read, in ms on `performance.now()`'s clock; undefined while it can
   * be.
   */
  #awaySince: number | undefined;
  /** The final record has been shown, or the log ended without another. */
  #over = false;
  #failure: InferenceError | undefined;
  /**
   * When the log was last read, on the same clock; endless while the request may not be admitted
   * yet.
   */
  #readAt = Infinity;
  /** When it was last noticed that a message had been shown, on the same clock. */
  #receivedAt = -Infinity;
  /** A message has been shown since then. The hot path sets this and need not ask for the time. */
  #hasReceived = false;

  /** @param next the index that follows what the log holds now */
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

  /** @param wake is called whenever `from` may answer differently */
  join(wake: () => void): void {
    this.#readers.add(wake);
  }

  leave(wake: () => void): void {
    this.#readers.delete(wake);
  }

  /** The request is in Redis: from now on the log is read when nothing comes. */
  begin(): void {
    if (this.#readAt === Infinity) this.#readAt = performance.now();
  }

  /** A message came on the request's subject. */
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
   * @param silentMs the log is read after this many ms without a message or a read
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

  /** Reads the log, unless it is being read. */
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
   * @param shown the index after the last record that was shown when the read began: the log must
   * hold all below it
   */
  #applyPage(page: Page, shown: number, reason: Reason): void {
    this.#reading = undefined;
    this.#readAt = performance.now();
    this.#awaySince = undefined;
    const before = this.#ring.next;
    if (page.said === "records") {
      for (const json of page.records) this.#confirm(json);
      if (!page.more && this.#confirmed < shown) this.#fail(forged());
    } else this.#applyStatus(page, shown);
    const learned = this.#ring.next > before;
    this.#unconfirmedChars = this.#ring.charsFrom(this.#confirmed);
    this.#showReordered();
    this.#reorder.forget(Infinity);
    if (this.#ring.next !== before || this.isOver) this.#wake();
    if (this.#mustReadAgain(page, learned, reason)) this.readLog();
  }

  #mustReadAgain(page: Page, learned: boolean, reason: Reason): boolean {
    const { next } = this.#ring;
    if (this.#arrived >= next) return true;
    // More was shown while Redis was away than can be compared at once.
    if (next > this.#confirmed && this.#ring.at(this.#confirmed) === undefined) return true;
    if (reason === "check" || page.said !== "records") return false;
    // Only an empty page says how the request stands.
    return page.more || (!learned && next === this.#confirmed);
  }

  /** @param json the next record of the log */
  #confirm(json: string): void {
    const index = this.#confirmed++;
    if (index === this.#ring.next) this.#push(recordOf(index, json));
    else if ((this.#ring.at(index)?.json ?? json) !== json) this.#fail(forged());
  }

  #push(record: StreamRecord): void {
    this.#ring.push(record);
    if (record.final) this.#over = true;
  }

  #applyStatus(page: EmptyPage, shown: number): void {
    const now = pageStatus(page, this.#confirmed, "running", this.#settings.models.isGenerator(this.address.model));
    // While a stream runs, what came as a message during the read may have been appended after it.
    // Once the stream has ended, nothing is appended.
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

  /** Shows the early messages whose turn has come. */
  #showReordered(): void {
    for (;;) {
      const record = this.#reorder.at(this.#ring.next);
      if (record === undefined || !this.#show(record)) return;
    }
  }

  /**
   * Shows a record of the next index, unconfirmed.
   * @returns false where it must be read in the log instead
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
   * Whether a message of the next index may be shown as it comes: no earlier message waits for the
   * log to be read.
   */
  #canShowAtOnce(): boolean {
    return this.#awaySince !== undefined || (this.#reading !== "news" && this.#arrived < this.#ring.next);
  }

  #isCheckDue(): boolean {
    if (this.#reading !== undefined || this.#awaySince !== undefined) return false;
    return this.#ring.next - this.#confirmed >= this.#checkedAfter || this.#unconfirmedChars >= CHECK.chars;
  }

  #wake(): void {
    for (const wake of this.#readers) wake();
  }
}

function forged(): InferenceError {
  return fixedError("state_lost", "otherThanLog");
}
