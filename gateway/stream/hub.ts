/**
 * The newest records of one request, for all who read it at this gateway: one subscription, and one look into the log at a time.
 *
 * A message on NATS only says that there is something to read: what is shown comes from the log, so nothing that is doubled, reordered, lost, cut short or published
 * by somebody else can be shown. The exception is a Redis that cannot be read. Then messages are shown that are whole records and continue the stream without a gap;
 * what is not defended against is a forger who may publish on the subject, guesses the request's id and the next index, and does so during such an outage. It is found
 * out when the log can be read again: the stream ends with an error.
 */
import type { Logger } from "pino";
import type { RequestAddress } from "#shared/contract/request-id.js";
import { InferenceError } from "#shared/errors.js";
import { isTransient } from "#shared/retry.js";
import type { StreamRecord } from "../inference.js";
import type { LogReader } from "./log-reader.js";
import type { Page } from "./read-logs.js";
import { claimedIndex, isRecord, recordOf } from "./records.js";
import { Ring } from "./ring.js";
import { standing, type EmptyPage } from "./standing.js";

export interface HubSettings {
  readonly address: RequestAddress;
  readonly logs: LogReader;
  readonly isStream: () => boolean | undefined;
  readonly log: Logger;
}

/** How long a stream outlives the last sign of Redis. */
export const AWAY_MS = 60_000;
/** Pause between two looks while Redis is away. */
const RETRY_MS = 100;
/** Messages kept for the case that the log cannot be read. */
const HEARD = { records: 256, bytes: 262_144 };

export class Hub {
  readonly address: RequestAddress;
  readonly #settings: HubSettings;
  readonly #ring: Ring;
  /** Woken whenever `at` may answer differently. */
  readonly #readers = new Set<() => void>();
  /** Records below this index are in the log; those of the ring above it were only heard. */
  #confirmed: number;
  /** Messages whose records the log has not shown yet, by the index that they claim. */
  readonly #heard = new Map<number, Buffer>();
  #heardBytes = 0;
  #looking = false;
  /** The highest index that a message claimed during this look, perhaps after the log was read; endless for a message that claims none. */
  #arrived = -1;
  /** Since when Redis cannot be read, on `performance.now()`'s clock. */
  #awaySince: number | undefined;
  #over = false;
  #failure: InferenceError | undefined;
  /** When the log was last read, on `performance.now()`'s clock; endless for a request that may not be admitted yet. */
  #lookedAt = Infinity;

  /** @param next index that follows what is in the log now. */
  constructor(settings: HubSettings, next: number) {
    this.#settings = settings;
    this.address = settings.address;
    this.#ring = new Ring(next);
    this.#confirmed = next;
  }

  /** The record at `index`; `ahead`: not there yet; `behind`: only the log still has it; `over`: the stream ended before. @throws InferenceError when it failed */
  at(index: number): StreamRecord | "ahead" | "behind" | "over" {
    if (this.#failure !== undefined) throw this.#failure;
    const record = this.#ring.at(index);
    if (record !== undefined) return record;
    if (index < this.#ring.next) return "behind";
    return this.#over ? "over" : "ahead";
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
    const index = claimedIndex(message);
    if (index !== undefined) {
      if (index < this.#ring.next) return;
      this.#hear(index, message);
    }
    this.#arrived = Math.max(this.#arrived, index ?? Infinity);
    if (this.#awaySince === undefined) this.look();
    else this.#showHeard();
  }

  /** @param silentMs how long nothing may be read before the log is looked into. */
  lookIfSilent(now: number, silentMs: number): void {
    const patience = this.#awaySince === undefined ? silentMs : RETRY_MS;
    if (now - this.#lookedAt >= patience) this.look();
  }

  look(): void {
    if (this.#looking || this.isOver) return;
    this.#looking = true;
    this.#arrived = -1;
    const from = this.#confirmed;
    const shown = this.#ring.next;
    this.#settings.logs.read(this.address, from).then(
      (page) => this.#take(page, from, shown),
      (error: unknown) => this.#miss(error),
    );
  }

  /** @param shown index after the last record that was shown when the look began. */
  #take(page: Page, from: number, shown: number): void {
    this.#looking = false;
    this.#lookedAt = performance.now();
    this.#awaySince = undefined;
    const before = this.#ring.next;
    if (page.said === "records") {
      for (const [i, bytes] of page.records.entries()) this.#confirm(recordOf(from + i, bytes));
    } else this.#judge(page, shown);
    this.#forgetHeard();
    if (this.#ring.next !== before || this.isOver) this.#wake();
    const next = this.#ring.next;
    if ((page.said === "records" && page.more) || this.#arrived >= next || next > this.#confirmed) this.look();
  }

  #confirm(record: StreamRecord): void {
    this.#confirmed = record.index + 1;
    if (record.index >= this.#ring.next) this.#ring.push(record);
    else if (this.#ring.at(record.index)?.bytes.equals(record.bytes) === false) this.#fail(forged());
    if (record.final) this.#over = true;
  }

  #judge(page: EmptyPage, shown: number): void {
    const now = standing(page, this.#confirmed, "running", this.#settings.isStream());
    // While a stream runs, what was heard during the look may have been appended after the log was read; once it has ended, nothing is.
    const known = now.kind === "wait" ? shown : this.#ring.next;
    if (now.kind === "refused") this.#fail(now.error);
    else if (known > this.#confirmed) this.#fail(forged());
    else if (now.kind === "over") this.#over = true;
    else if (now.kind === "final") this.#confirm(now.record);
  }

  #miss(error: unknown): void {
    this.#looking = false;
    const now = performance.now();
    this.#lookedAt = now;
    this.#awaySince ??= now;
    if (!isTransient(error)) {
      this.#settings.log.error({ error: String(error) }, "a stream's log cannot be read");
      this.#fail(new InferenceError("internal", "internal error"));
    } else if (now - this.#awaySince >= AWAY_MS) {
      this.#fail(new InferenceError("unavailable", "the stream cannot be read now"));
    } else this.#showHeard();
    if (this.isOver) this.#wake();
  }

  #fail(error: InferenceError): void {
    this.#failure ??= error;
  }

  #hear(index: number, message: Buffer): void {
    if (index >= this.#ring.next + HEARD.records || this.#heard.has(index)) return;
    if (this.#heardBytes + message.length > HEARD.bytes) return;
    this.#heard.set(index, message);
    this.#heardBytes += message.length;
  }

  /** While Redis is away. */
  #showHeard(): void {
    const before = this.#ring.next;
    for (;;) {
      const { next } = this.#ring;
      const message = this.#heard.get(next);
      if (message === undefined || !isRecord(message, next)) break;
      const record = recordOf(next, message);
      this.#ring.push(record);
      if (record.final) this.#over = true;
    }
    this.#forgetHeard();
    if (this.#ring.next !== before) this.#wake();
  }

  #forgetHeard(): void {
    if (this.#heard.size === 0) return;
    for (const [index, { length }] of this.#heard) {
      if (index >= this.#ring.next) continue;
      this.#heard.delete(index);
      this.#heardBytes -= length;
    }
  }

  #wake(): void {
    for (const wake of this.#readers) wake();
  }
}

function forged(): InferenceError {
  return new InferenceError("state_lost", "the stream is not what its log says");
}
