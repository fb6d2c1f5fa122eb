/** Cuts a long list of things to write into script calls: a long call would hold up everybody's renewals. */

export interface CallLimits {
  /** What one call writes at most, unless a single item is more. */
  readonly bytes: number;
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
