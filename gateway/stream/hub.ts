/**
 * The newest records of one request, for all who read it at this gateway: one subscription, and one look into the log at a time.
 *
 * A message that continues the stream is shown as it comes. What was only heard is compared with the log before the final record is shown, and before it is more than
 * a reader who has fallen behind may hold; where the log says otherwise, the stream ends with an error. All else that a message may be (doubled, out of order, none of
 * ours, a final record) is never shown itself: it only says that there is something to read.
 *
 * While Redis cannot be read, whole records that continue the stream are shown without limit, the final one too. What is not defended against is a forger who may publish
 * on the subject, guesses the request's id and the next index, and does so during such an outage: of what was shown then, the newest records are compared later.
 */
import type { Logger } from "pino";
import type { RequestAddress } from "#shared/contract/request-id.js";
import { InferenceError } from "#shared/errors.js";
import { isTransient } from "#shared/retry.js";
import type { StreamRecord } from "../inference.js";
import { Heard } from "./heard.js";
import type { LogReader } from "./log-reader.js";
import type { Page } from "./read-logs.js";
import { heardRecord, isWhole, recordOf } from "./records.js";
import { Ring } from "./ring.js";
import { standing, type EmptyPage } from "./standing.js";

export interface HubSettings {
  readonly address: RequestAddress;
  readonly logs: LogReader;
  readonly isStream: () => boolean | undefined;
  readonly log: Logger;
}

/** Why the log is looked into: something may be there that was not heard, or what was heard is to be compared. */
type Reason = "news" | "check";

/** How long a stream outlives the last sign of Redis. */
export const AWAY_MS = 60_000;
/** Pause between two looks while Redis is away. */
const RETRY_MS = 100;
/** How much is shown before it is compared; streams that began together are not all compared together. */
const CHECK = { records: 64, chars: 32_768, ms: 1_000 };
let hubs = 0;

export class Hub {
  readonly address: RequestAddress;
  readonly #settings: HubSettings;
  readonly #ring: Ring;
  /** Woken whenever `from` may answer differently. */
  readonly #readers = new Set<() => void>();
  /** Records below this index were read in the log; those of the ring above it were only heard. */
  #confirmed: number;
  #unconfirmedChars = 0;
  readonly #checkedAfter = CHECK.records / 2 + (hubs++ % (CHECK.records / 2));
  readonly #heard = new Heard();
  #looking: Reason | undefined;
  /** The highest index that a message claimed during this look and that could not be shown; endless for a message that claims none. */
  #arrived = -1;
  /** Since when Redis cannot be read, on `performance.now()`'s clock. */
  #awaySince: number | undefined;
  #over = false;
  #failure: InferenceError | undefined;
  /** When the log was last read, on `performance.now()`'s clock; endless for a request that may not be admitted yet. */
  #lookedAt = Infinity;
  /** When it was last noticed that something was heard, on the same clock. */
  #heardAt = -Infinity;
  #hasHeard = false;

  /** @param next index that follows what is in the log now. */
  constructor(settings: HubSettings, next: number) {
    this.#settings = settings;
    this.address = settings.address;
    this.#ring = new Ring(next);
    this.#confirmed = next;
  }

  /** All records from `index` on; `ahead`: not there yet; `behind`: only the log still has them; `over`: the stream ended before. @throws InferenceError when it failed */
  from(index: number): readonly StreamRecord[] | "ahead" | "behind" | "over" {
    if (this.#failure !== undefined) throw this.#failure;
    if (index >= this.#ring.next) return this.#over ? "over" : "ahead";
    const records = this.#ring.from(index);
    return records.length > 0 ? records : "behind";
  }

  /** Whether a reader may begin at `index` without looking into the log. */
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

  join(wake: () => void): void {
    this.#readers.add(wake);
  }

  leave(wake: () => void): void {
    this.#readers.delete(wake);
  }

  /** The request is in Redis: from now on silence is looked into. */
  begin(): void {
    if (this.#lookedAt === Infinity) this.#lookedAt = performance.now();
  }

  receive(message: Buffer): void {
    if (this.isOver) return;
    const record = heardRecord(message);
    const { next } = this.#ring;
    if (record !== undefined) {
      if (record.index < next) return;
      if (record.index === next && this.#isSure() && this.#show(record)) {
        if (this.#awaySince !== undefined) this.#showHeard();
        this.#wake();
        if (this.#isCheckDue()) this.look("check");
        return;
      }
      if (this.#looking !== undefined || this.#awaySince !== undefined) this.#heard.keep(record, next);
    }
    this.#arrived = Math.max(this.#arrived, record?.index ?? Infinity);
    if (this.#awaySince === undefined) this.look();
  }

  /** @param silentMs how long nothing may be read or heard before the log is looked into. */
  lookIfSilent(now: number, silentMs: number): void {
    if (this.#hasHeard) this.#heardAt = now;
    this.#hasHeard = false;
    const sinceLook = now - this.#lookedAt;
    if (this.#awaySince !== undefined) {
      if (sinceLook >= RETRY_MS) this.look();
    } else if (Math.min(sinceLook, now - this.#heardAt) >= silentMs) this.look();
    else if (sinceLook >= CHECK.ms && this.#ring.next > this.#confirmed) this.look("check");
  }

  look(reason: Reason = "news"): void {
    if (this.#looking !== undefined || this.isOver) return;
    this.#looking = reason;
    this.#arrived = -1;
    const from = this.#confirmed;
    const shown = this.#ring.next;
    this.#settings.logs.read(this.address, from).then(
      (page) => this.#take(page, shown, reason),
      (error: unknown) => this.#miss(error),
    );
  }

  /** @param shown index after the last record that was shown when the look began: as much is in the log. */
  #take(page: Page, shown: number, reason: Reason): void {
    this.#looking = undefined;
    this.#lookedAt = performance.now();
    this.#awaySince = undefined;
    const before = this.#ring.next;
    if (page.said === "records") {
      for (const json of page.records) this.#confirm(json);
      if (!page.more && this.#confirmed < shown) this.#fail(forged());
    } else this.#judge(page, shown);
    const learned = this.#ring.next > before;
    this.#unconfirmedChars = this.#ring.charsFrom(this.#confirmed);
    this.#showHeard();
    this.#heard.forget(Infinity);
    if (this.#ring.next !== before || this.isOver) this.#wake();
    if (this.#mustLookAgain(page, learned, reason)) this.look();
  }

  #mustLookAgain(page: Page, learned: boolean, reason: Reason): boolean {
    const { next } = this.#ring;
    if (this.#arrived >= next) return true;
    // More was shown while Redis was away than can be compared at once.
    if (next > this.#confirmed && this.#ring.at(this.#confirmed) === undefined) return true;
    if (reason === "check" || page.said !== "records") return false;
    // What is known of the request is told where the log has nothing more.
    return page.more || (!learned && next === this.#confirmed);
  }

  /** @param json what the log says next. */
  #confirm(json: string): void {
    const index = this.#confirmed++;
    if (index === this.#ring.next) this.#add(recordOf(index, json));
    else if ((this.#ring.at(index)?.json ?? json) !== json) this.#fail(forged());
  }

  #add(record: StreamRecord): void {
    this.#ring.push(record);
    if (record.final) this.#over = true;
  }

  #judge(page: EmptyPage, shown: number): void {
    const now = standing(page, this.#confirmed, "running", this.#settings.isStream());
    // While a stream runs, what was heard during the look may have been appended after the log was read; once it has ended, nothing is.
    const known = now.kind === "wait" ? shown : this.#ring.next;
    if (now.kind === "refused") this.#fail(now.error);
    else if (known > this.#confirmed) this.#fail(forged());
    else if (now.kind === "over") this.#over = true;
    else if (now.kind === "final") this.#add(now.record);
  }

  #miss(error: unknown): void {
    this.#looking = undefined;
    const now = performance.now();
    this.#lookedAt = now;
    this.#awaySince ??= now;
    const before = this.#ring.next;
    if (!isTransient(error)) {
      this.#settings.log.error({ error: String(error) }, "a stream's log cannot be read");
      this.#fail(new InferenceError("internal", "internal error"));
    } else if (now - this.#awaySince >= AWAY_MS) {
      this.#fail(new InferenceError("unavailable", "the stream cannot be read now"));
    } else {
      this.#showHeard();
      this.#heard.forget(this.#ring.next);
    }
    if (this.#ring.next !== before || this.isOver) this.#wake();
  }

  #fail(error: InferenceError): void {
    this.#failure ??= error;
  }

  /** What waited for its turn. */
  #showHeard(): void {
    for (;;) {
      const record = this.#heard.at(this.#ring.next);
      if (record === undefined || !this.#show(record)) return;
    }
  }

  /** @param record of the next index. @returns false where only the log can say it. */
  #show(record: StreamRecord): boolean {
    const away = this.#awaySince !== undefined;
    if (!away && (record.final || !this.#ring.hasRoom(record.json.length, this.#confirmed))) return false;
    if (this.isOver || !isWhole(record)) return false;
    this.#add(record);
    this.#unconfirmedChars += record.json.length;
    this.#hasHeard = true;
    return true;
  }

  /** Nothing was heard that only the log can say: a message of the next index comes in its turn. */
  #isSure(): boolean {
    return this.#awaySince !== undefined || (this.#looking !== "news" && this.#arrived < this.#ring.next);
  }

  #isCheckDue(): boolean {
    if (this.#looking !== undefined || this.#awaySince !== undefined) return false;
    return this.#ring.next - this.#confirmed >= this.#checkedAfter || this.#unconfirmedChars >= CHECK.chars;
  }

  #wake(): void {
    for (const wake of this.#readers) wake();
  }
}

function forged(): InferenceError {
  return new InferenceError("state_lost", "the stream is not what its log says");
}
