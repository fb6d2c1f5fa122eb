/**
 * One reader of one request. A cursor holds an index and at most one page, so a slow reader costs
 * no more than a quick one.
 */
import type { RequestAddress } from "#shared/queue/address.js";
import { fixedError } from "#shared/errors.js";
import { Signal } from "#shared/signal.js";
import type { StreamRecord } from "./open-stream.js";
import { AWAY_MS, type LiveStream } from "./live-stream.js";
import type { Page } from "#shared/queue/admission/read-logs.js";
import { recordOf } from "./records.js";
import type { Relay } from "./relay.js";
import { pageStatus, type EmptyPage, type Seen } from "./page-status.js";

/** A reader that begins waits for Redis no longer than this, in ms. */
export const FIRST_MS = 2_000;

export class Cursor {
  readonly #relay: Relay;
  readonly #address: RequestAddress;
  readonly #fresh: boolean;
  /** Index of the record that the reader gets next. */
  #next: number;
  /** The page that `open` read; undefined once the reader has it. */
  #first: Page | undefined;
  /** The live stream that the reader follows; undefined while the cursor only reads the log. */
  #liveStream: LiveStream | undefined;
  #seen: Seen;
  /** Whether the reader has had the last record. */
  #over = false;

  private constructor(relay: Relay, address: RequestAddress, next: number, fresh: boolean) {
    this.#relay = relay;
    this.#address = address;
    this.#next = next;
    this.#fresh = fresh;
    this.#seen = fresh ? "running" : "nothing";
  }

  /** Reads a request that this gateway has admitted just now, from its first record on. */
  static fresh(relay: Relay, address: RequestAddress): Cursor {
    return new Cursor(relay, address, 0, true);
  }

  /** Reads from index `from` on. Checks nothing before the reader asks for the first record. */
  static at(relay: Relay, address: RequestAddress, from: number): Cursor {
    return new Cursor(relay, address, from, false);
  }

  /**
   * Reads from index `from` on, and checks at once that there is something to read.
   * @throws InferenceError if there is nothing to read from that index on
   */
  static async open(relay: Relay, address: RequestAddress, from: number): Promise<Cursor> {
    const cursor = Cursor.at(relay, address, from);
    if (relay.liveStream(address)?.covers(from) === true) return cursor;
    const page = await cursor.#read(FIRST_MS);
    cursor.#first = page;
    if (page.said !== "records") cursor.#statusOf(page);
    return cursor;
  }

  /**
   * Yields every available page until the final record, or until `signal` aborts. May be called
   * once per cursor.
   * @throws InferenceError
   */
  async *pages(signal: AbortSignal): AsyncGenerator<readonly StreamRecord[], void> {
    const changed = new Signal();
    const wake = () => changed.notify();
    const leave = this.#relay.readers.join(this.#address, this.#fresh);
    signal.addEventListener("abort", wake);
    try {
      while (!signal.aborted) {
        const found = this.#fromLive(wake);
        if (found === "over") return;
        if (found === "ahead") {
          await changed.wait(Infinity);
          continue;
        }
        const page = found === "behind" ? await this.#page(wake, signal) : found;
        const last = page.at(-1);
        if (last === undefined) continue;
        this.#next = last.index + 1;
        this.#over = last.final;
        yield page;
      }
    } finally {
      signal.removeEventListener("abort", wake);
      this.#liveStream?.leave(wake);
      leave(this.#over);
    }
  }

  /**
   * The live stream's records for the reader, which joins the stream as soon as it covers the
   * index.
   */
  #fromLive(wake: () => void): readonly StreamRecord[] | "ahead" | "behind" | "over" {
    if (this.#over) return "over";
    if (this.#liveStream === undefined && this.#first === undefined) {
      const live = this.#relay.liveStream(this.#address);
      if (live?.covers(this.#next) === true) this.#join(live, wake);
    }
    return this.#liveStream?.from(this.#next) ?? "behind";
  }

  /**
   * Gives the records of the log at the reader's index. Gives none if the reader follows the live
   * stream from now on, or has read all.
   */
  async #page(wake: () => void, signal: AbortSignal): Promise<StreamRecord[]> {
    const page = this.#first ?? (await this.#readOn(signal));
    this.#first = undefined;
    if (page === undefined) return [];
    if (page.said === "records") {
      if (this.#seen === "nothing") this.#seen = "records";
      return page.records.map((json, i) => recordOf(this.#next + i, json, page.note));
    }
    const now = this.#statusOf(page);
    if (now.kind === "final") return [now.record];
    this.#over = now.kind === "over";
    if (this.#over) return [];
    // A live stream beyond the end of the log knows records that the log has lost.
    if (this.#liveStream !== undefined) throw fixedError("state_lost", "recordsGone");
    this.#seen = "running";
    const live = await this.#relay.follow(this.#address, this.#next);
    if (!signal.aborted) this.#join(live, wake);
    return [];
  }

  /** @throws InferenceError if the reader can get nothing any more */
  #statusOf(page: EmptyPage) {
    const now = pageStatus(page, this.#next, this.#seen, this.#relay.models.hasStreams(this.#address.model));
    if (now.kind === "refused") throw now.error;
    return now;
  }

  #join(live: LiveStream, wake: () => void): void {
    this.#liveStream = live;
    live.join(wake);
  }

  /** @returns undefined when `signal` has aborted */
  async #readOn(signal: AbortSignal): Promise<Page | undefined> {
    try {
      return await this.#read(AWAY_MS, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  /** @throws InferenceError `unavailable` if the gateway could not read Redis for `budgetMs` */
  #read(budgetMs: number, signal?: AbortSignal): Promise<Page> {
    const policy = signal === undefined ? { budgetMs } : { budgetMs, signal };
    return this.#relay.logs.readSurely(this.#address, this.#next, policy);
  }
}
