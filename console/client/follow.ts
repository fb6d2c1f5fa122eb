/**
 * Follows the records of a stream to its end, over as many connections as necessary. Each record
 * has an index, and a new connection continues behind the last index, at any gateway. So the text
 * has no gap and no repeat, whichever process dies.
 */
import { signal } from "@preact/signals";
import type { TokenRecord } from "#shared/contract/generation.js";
import { readEvents } from "./events.js";
import { pauseAfter } from "./poll.js";
import { Refusal, refusalOf } from "./refusal.js";

/** Where the reader stands. */
export type ReaderState =
  | { readonly kind: "connecting" | "live" | "reconnecting" | "paused" }
  | { readonly kind: "ended"; readonly reason: string; readonly message: string | undefined }
  | { readonly kind: "refused"; readonly error: Refusal };

/** An unfinished character of a choice is never in its text: workers send whole characters only. */
export class Follower {
  /** The text of each choice so far. */
  readonly texts = signal<readonly string[]>([""]);
  /** The index of the last record; -1 before the first. */
  readonly index = signal(-1);
  readonly state = signal<ReaderState>({ kind: "connecting" });
  /** How often a connection broke, and the reader continued. */
  readonly resumed = signal(0);
  readonly usage = signal<TokenRecord["usage"]>(undefined);
  readonly #path: string;
  #reading: AbortController | undefined;

  constructor(id: string) {
    this.#path = `/v2/requests/${encodeURIComponent(id)}/events`;
  }

  /** @param from the index of the first record to show; the text begins there */
  start(from = 0): void {
    this.stop();
    this.texts.value = [""];
    this.index.value = from - 1;
    this.resumed.value = 0;
    this.#begin();
  }

  stop(): void {
    this.#reading?.abort();
    this.#reading = undefined;
  }

  /** A hidden tab asks nothing: it continues behind its last record when the user comes back. */
  onVisibility(isHidden: boolean): void {
    const { kind } = this.state.value;
    if (kind === "ended" || kind === "refused") return;
    this.stop();
    if (isHidden) this.state.value = { kind: "paused" };
    else this.#begin();
  }

  #begin(): void {
    const reading = new AbortController();
    this.#reading = reading;
    void this.#read(reading.signal);
  }

  async #read(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      const before = this.index.value;
      try {
        await this.#readConnection(signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Refusal && error.status < 500) {
          this.state.value = { kind: "refused", error };
          return;
        }
      }
      if (signal.aborted || this.state.value.kind === "ended" || this.state.value.kind === "refused") return;
      failures = this.index.value > before ? 1 : failures + 1;
      this.state.value = { kind: "reconnecting" };
      await pause(pauseAfter(failures), signal);
      this.resumed.value += 1;
    }
  }

  async #readConnection(signal: AbortSignal): Promise<void> {
    const last = this.index.value;
    await readEvents(last < 0 ? this.#path : `${this.#path}?after=${last}`, {
      signal,
      onOpen: () => (this.state.value = { kind: "live" }),
      onEvent: ({ event, data }) => this.#take(event, data),
    });
  }

  #take(event: string | undefined, data: string): void {
    if (event === "error") {
      this.state.value = { kind: "refused", error: refusalOf(200, data, null) };
      return;
    }
    const record = JSON.parse(data) as TokenRecord;
    const texts = [...this.texts.value];
    for (const { index, text } of record.choices) texts[index] = (texts[index] ?? "") + text;
    this.texts.value = texts;
    this.index.value = record.index;
    this.usage.value = record.usage ?? this.usage.value;
    if (record.final !== true) return;
    this.state.value = { kind: "ended", reason: record.reason ?? "finished", message: record.error?.message };
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
