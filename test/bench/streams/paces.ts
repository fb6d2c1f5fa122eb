/**
 * Turns events with their times into a reader's waits: the time to the first token, and between the
 * tokens that follow.
 */
import type { StreamEvent } from "./events.js";

export interface TimedStream {
  readonly sentAt: number;
  readonly events: readonly StreamEvent[];
}

export interface Paces {
  /** How many tokens came between the two times. */
  readonly tokens: number;
  /**
   * Milliseconds to the first token, of the streams whose request went out between the two times.
   */
  readonly firstMs: readonly number[];
  /**
   * Milliseconds before each token that came between the two times, without each stream's first.
   */
  readonly betweenMs: readonly number[];
  /**
   * Mean milliseconds between tokens, of each stream whose request went out between the two times.
   * The mean is the useful figure if several tokens come at once.
   */
  readonly meanMs: readonly number[];
}

export function pacesOf(streams: readonly TimedStream[], from: number, to: number): Paces {
  let tokens = 0;
  const firstMs: number[] = [];
  const betweenMs: number[] = [];
  const meanMs: number[] = [];
  for (const { sentAt, events } of streams) {
    const first = events[0];
    const end = events.at(-1);
    if (first !== undefined && end !== undefined && sentAt >= from && sentAt < to) {
      firstMs.push(first.at - sentAt);
      if (end.index > first.index) meanMs.push((end.at - first.at) / (end.index - first.index));
    }
    let last: StreamEvent | undefined;
    for (const event of events) {
      if (event.at >= from && event.at < to) {
        // An event may bring tokens that had no text of their own. These share its time.
        const brought = event.index - (last?.index ?? -1);
        tokens += brought;
        if (last !== undefined) for (let i = 0; i < brought; i++) betweenMs.push((event.at - last.at) / brought);
      }
      last = event;
    }
  }
  return { tokens, firstMs, betweenMs, meanMs };
}
