/**
 * The pauses between the blows of a fault test: the fleet must be at work when the next blow falls.
 */

/** Calls `blow` this many times, `everyMs` apart, each time after the last call has ended. */
export async function repeatedly(count: number, everyMs: number, blow: (i: number) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < count; i++) {
    await pause(everyMs);
    await blow(i);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function nth<T>(items: readonly T[], i: number): T {
  const item = items[i % items.length];
  if (item === undefined) throw new Error("nothing there");
  return item;
}
