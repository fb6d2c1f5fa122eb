/**
 * Resolves in a turn of the event loop that nobody else was given: bodies that each take a few
 * milliseconds to parse, and arrive together, let everything else happen between them.
 */
import { setImmediate } from "node:timers/promises";

let last: Promise<void> = Promise.resolve();

export function ownTurn(): Promise<void> {
  last = last.then(() => setImmediate());
  return last;
}
