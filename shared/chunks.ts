/**
 * Cuts a long list into several script calls, because a long call would delay the heartbeats of all
 * workers.
 */

export interface CallLimits {
  /** The most bytes of a call, unless a single item has more. */
  readonly bytes: number;
  /** The most items of a call; absent: no limit. */
  readonly items?: number;
}

export function chunks<Item>(
  items: readonly Item[],
  bytesOf: (item: Item) => number,
  limits: CallLimits,
): [Item, ...Item[]][] {
  const done: [Item, ...Item[]][] = [];
  let room = 0;
  for (const item of items) {
    const bytes = bytesOf(item);
    const open = done.at(-1);
    if (open === undefined || bytes > room || open.length === limits.items) {
      done.push([item]);
      room = limits.bytes;
    } else {
      open.push(item);
    }
    room -= bytes;
  }
  return done;
}
