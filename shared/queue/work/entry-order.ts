/** The order of a stream's entries, by their ids: `<ms>-<number>`. */

/**
 * The oldest and the newest of some entries. They may come in any order, because a suspect comes
 * after newer entries.
 */
export function span(entries: readonly string[]): [oldest: string, newest: string] {
  const [first = ""] = entries;
  return [
    entries.reduce((oldest, entry) => (isOlder(entry, oldest) ? entry : oldest), first),
    entries.reduce((newest, entry) => (isOlder(newest, entry) ? entry : newest), first),
  ];
}

/** Whether an entry is at most as new as another. */
export function isUpTo(id: string, other: string): boolean {
  return !isOlder(other, id);
}

function isOlder(a: string, b: string): boolean {
  // The first part, the time in ms, has 13 digits until 2286, so ids of equal length compare as
  // text.
  if (a.length === b.length) return a < b;
  const [aMs = 0n, aNumber = 0n] = a.split("-").map(BigInt);
  const [bMs = 0n, bNumber = 0n] = b.split("-").map(BigInt);
  return aMs < bMs || (aMs === bMs && aNumber < bNumber);
}
