/**
 * Reads a path again and again while a page shows it. A page that shows several paths reads them in
 * turn, so that it asks once in a pause. A hidden tab asks nothing. While the gateway does not
 * answer, the pauses grow, and the page shows the last answer as old.
 */
import { signal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { read } from "./ask.js";
import { wanted } from "./key.js";
import { Away } from "./refusal.js";

/** Pause between two reads, in ms. */
const EVERY_MS = 5_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;
/** Answers that are remembered after their page has gone. */
const MOST_REMEMBERED = 50;

export interface Polled<Answer> {
  /** The last answer; undefined before the first. */
  readonly answer: Signal<Answer | undefined>;
  /** When the last answer came, in ms since 1970. */
  readonly at: Signal<number | undefined>;
  /** Why the last read has failed; undefined if it has not. */
  readonly error: Signal<Error | undefined>;
  /** Reads now. */
  refresh(): void;
}

/**
 * Takes the answers that the gateway sends by itself after the first one. While a feed runs, the
 * page does not read. A feed returns at once if the gateway sends none.
 * @throws Refusal or Away
 */
export type Feed<Answer> = (first: Answer, take: (answer: Answer) => void, signal: AbortSignal) => Promise<void>;

/** @param failures in a row, at least one */
export function pauseAfter(failures: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS);
}

/** When the last poll began, in ms of `performance.now`. */
let lastBegan = -Infinity;

/** Every path that a page has shown: a page that comes back shows its last answer at once. */
const polls = new Map<string, Poll<unknown>>();

/** Reads a path while the component is there. */
export function usePolled<Answer>(path: string): Polled<Answer> {
  return usePolledBy<Answer>(path, (signal) => read<Answer>(path, { signal }));
}

/**
 * Does the same with an answer that takes more than one request.
 * @param name of the answer
 * @param restOf how long to rest after an answer, in ms. Infinity means until the user asks, and
 *   undefined as long as other polls.
 */
export function usePolledBy<Answer>(
  name: string,
  load: (signal: AbortSignal) => Promise<Answer>,
  restOf: (answer: Answer) => number | undefined = () => undefined,
  feed: Feed<Answer> = () => Promise.resolve(),
): Polled<Answer> {
  let poll = polls.get(name) as Poll<Answer> | undefined;
  if (poll === undefined) {
    poll = new Poll(load, restOf, feed, () => {
      if (polls.size > MOST_REMEMBERED) polls.delete(name);
    });
    polls.set(name, poll as Poll<unknown>);
  }
  const shown = poll;
  useEffect(() => shown.show(), [shown]);
  return shown;
}

class Poll<Answer> implements Polled<Answer> {
  readonly answer = signal<Answer | undefined>(undefined);
  readonly at = signal<number | undefined>(undefined);
  readonly error = signal<Error | undefined>(undefined);
  readonly #load: (signal: AbortSignal) => Promise<Answer>;
  readonly #restOf: (answer: Answer) => number | undefined;
  readonly #feed: Feed<Answer>;
  readonly #onHidden: () => void;
  #failures = 0;
  #shown = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The read that is under way. */
  #reading: AbortController | undefined;

  constructor(
    load: (signal: AbortSignal) => Promise<Answer>,
    restOf: (answer: Answer) => number | undefined,
    feed: Feed<Answer>,
    onHidden: () => void,
  ) {
    this.#load = load;
    this.#restOf = restOf;
    this.#feed = feed;
    this.#onHidden = onHidden;
  }

  /** @returns a function to call when the page has gone */
  show(): () => void {
    this.#shown += 1;
    if (this.#shown === 1) {
      document.addEventListener("visibilitychange", this.#onVisibility);
      this.refresh();
    }
    return () => {
      this.#shown -= 1;
      if (this.#shown > 0) return;
      document.removeEventListener("visibilitychange", this.#onVisibility);
      this.#stop();
      this.#onHidden();
    };
  }

  refresh(): void {
    this.#stop();
    if (this.#shown === 0 || document.hidden) return;
    void this.#read();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#reading?.abort();
    this.#reading = undefined;
  }

  readonly #onVisibility = (): void => (document.hidden ? this.#stop() : this.refresh());

  async #read(): Promise<void> {
    const reading = new AbortController();
    this.#reading = reading;
    lastBegan = performance.now();
    let rest = EVERY_MS;
    try {
      const answer = await this.#load(reading.signal);
      if (reading.signal.aborted) return;
      this.#take(answer);
      const fedSince = performance.now();
      const take = (next: Answer): void => {
        this.#take(next);
        this.#failures = 0;
      };
      await this.#feed(answer, take, reading.signal);
      if (reading.signal.aborted) return;
      this.#failures = 0;
      // After a feed that has ended, the next read is due at once.
      rest = (this.#restOf(answer) ?? EVERY_MS) - (performance.now() - fedSince);
    } catch (error) {
      if (reading.signal.aborted) return;
      this.error.value = error instanceof Error ? error : new Error(String(error));
      this.#failures = error instanceof Away ? this.#failures + 1 : 0;
    }
    if (this.#failures > 0) this.#timer = setTimeout(() => this.refresh(), pauseAfter(this.#failures));
    else if (rest < Infinity) this.#timer = setTimeout(this.#takeTurn, rest);
  }

  #take(answer: Answer): void {
    this.answer.value = answer;
    this.at.value = Date.now();
    this.error.value = undefined;
  }

  /** Of several polls whose pauses have ended, the first reads, and the others wait on. */
  readonly #takeTurn = (): void => {
    const wait = lastBegan + EVERY_MS - performance.now();
    if (wait > 0) this.#timer = setTimeout(this.#takeTurn, wait);
    else this.refresh();
  };
}

/** Reads all shown paths again, for example with another key. */
export function refreshAll(): void {
  for (const poll of polls.values()) poll.refresh();
}

/** Forgets all answers, because another key may not see them. */
export function forgetAll(): void {
  for (const poll of polls.values()) {
    poll.answer.value = undefined;
    poll.at.value = undefined;
    poll.error.value = undefined;
  }
  wanted.value = undefined;
  refreshAll();
}
