/** One reader of one request: it holds an index and at most a page, so a slow one costs no more than a quick one. */
import type { RequestAddress } from "#shared/contract/request-id.js";
import { InferenceError } from "#shared/errors.js";
import { isTransient, retrying } from "#shared/retry.js";
import { Signal } from "#shared/signal.js";
import type { StreamRecord } from "../inference.js";
import { AWAY_MS, type Hub } from "./hub.js";
import type { Page } from "./read-logs.js";
import { recordOf } from "./records.js";
import type { Relay } from "./relay.js";
import { standing, type EmptyPage, type Seen } from "./standing.js";

/** How long one who only begins to read waits for Redis. */
const FIRST_MS = 2_000;

export class Cursor {
  readonly #relay: Relay;
  readonly #address: RequestAddress;
  readonly #fresh: boolean;
  #next: number;
  /** Read at the start and not yet given out. */
  #first: Page | undefined;
  /** Undefined while only the log is read. */
  #hub: Hub | undefined;
  #seen: Seen;
  /** The last record has been given out. */
  #over = false;

  private constructor(relay: Relay, address: RequestAddress, next: number, fresh: boolean) {
    this.#relay = relay;
    this.#address = address;
    this.#next = next;
    this.#fresh = fresh;
    this.#seen = fresh ? "running" : "nothing";
  }

  /** Of a request that this gateway has admitted just now, from its beginning. */
  static fresh(relay: Relay, address: RequestAddress): Cursor {
    return new Cursor(relay, address, 0, true);
  }

  /** Whether anything can be read from `from` on shows at the first record. */
  static at(relay: Relay, address: RequestAddress, from: number): Cursor {
    return new Cursor(relay, address, from, false);
  }

  /** @throws InferenceError where nothing can be read from `from` on */
  static async open(relay: Relay, address: RequestAddress, from: number): Promise<Cursor> {
    const cursor = Cursor.at(relay, address, from);
    if (relay.find(address)?.covers(from) === true) return cursor;
    const page = await cursor.#read(FIRST_MS);
    cursor.#first = page;
    if (page.said !== "records") cursor.#stand(page);
    return cursor;
  }

  /** All that is there, again and again, up to the final record or until `signal` aborts. Once only. @throws InferenceError */
  async *pages(signal: AbortSignal): AsyncGenerator<readonly StreamRecord[], void> {
    const changed = new Signal();
    const wake = () => changed.notify();
    const leave = this.#relay.attendance.arrive(this.#address, this.#fresh);
    signal.addEventListener("abort", wake);
    try {
      while (!signal.aborted) {
        const found = this.#live(wake);
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
      this.#hub?.leave(wake);
      leave(this.#over);
    }
  }

  #live(wake: () => void): readonly StreamRecord[] | "ahead" | "behind" | "over" {
    if (this.#over) return "over";
    if (this.#hub === undefined && this.#first === undefined) {
      const hub = this.#relay.find(this.#address);
      if (hub?.covers(this.#next) === true) this.#join(hub, wake);
    }
    return this.#hub?.from(this.#next) ?? "behind";
  }

  /** What the log has at the reader's place; nothing where it must follow from now on, or has read all. */
  async #page(wake: () => void, signal: AbortSignal): Promise<StreamRecord[]> {
    const page = this.#first ?? (await this.#readOn(signal));
    this.#first = undefined;
    if (page === undefined) return [];
    if (page.said === "records") {
      if (this.#seen === "nothing") this.#seen = "records";
      return page.records.map((json, i) => recordOf(this.#next + i, json));
    }
    const now = this.#stand(page);
    if (now.kind === "final") return [now.record];
    this.#over = now.kind === "over";
    if (this.#over) return [];
    // A hub that is further than the log knows records which the log has lost.
    if (this.#hub !== undefined) throw new InferenceError("state_lost", "records of the stream are gone");
    this.#seen = "running";
    const hub = await this.#relay.follow(this.#address, this.#next);
    if (!signal.aborted) this.#join(hub, wake);
    return [];
  }

  #stand(page: EmptyPage) {
    const now = standing(page, this.#next, this.#seen, this.#relay.isStream(this.#address.lane));
    if (now.kind === "refused") throw now.error;
    return now;
  }

  #join(hub: Hub, wake: () => void): void {
    this.#hub = hub;
    hub.join(wake);
  }

  async #readOn(signal: AbortSignal): Promise<Page | undefined> {
    try {
      return await this.#read(AWAY_MS, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  async #read(budgetMs: number, signal?: AbortSignal): Promise<Page> {
    const policy = signal === undefined ? { budgetMs } : { budgetMs, signal };
    try {
      return await retrying(() => this.#relay.logs.read(this.#address, this.#next), policy);
    } catch (cause) {
      if (!isTransient(cause)) throw cause;
      throw new InferenceError("unavailable", "the stream cannot be read now", { cause });
    }
  }
}
