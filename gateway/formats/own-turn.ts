/** A large body is parsed in a turn of the event loop of its own. */
import { setImmediate } from "node:timers/promises";

/** JSON up to this many bytes takes less than a millisecond to parse. */
const smallBytes = 16 * 1024;
/** Copying the tensors of a body up to this many bytes takes less than a millisecond. */
const quicklyCopiedBytes = 512 * 1024;

let lastTurn: Promise<void> = Promise.resolve();

/**
 * Resolves at once for a small body, else in a turn of the event loop that no other body has. So if
 * bodies arrive together and each takes milliseconds to parse, other work still runs between them.
 */
export async function turnOfItsOwn(jsonBytes: number, bytes = jsonBytes): Promise<void> {
  if (jsonBytes <= smallBytes && bytes <= quicklyCopiedBytes) return;
  lastTurn = lastTurn.then(() => setImmediate());
  await lastTurn;
}
