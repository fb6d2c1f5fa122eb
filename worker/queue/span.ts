/** Entries of a stream in their order. */

/** The oldest and the newest of some entries; suspects come later than what is younger. */
export function span(entries: readonly string[]): [oldest: string, newest: string] {
  const [first = ""] = entries;
  return [
    entries.reduce((oldest, entry) => (isOlder(entry, oldest) ? entry : oldest), first),
    entries.reduce((newest, entry) => (isOlder(newest, entry) ? entry : newest), first),
  ];
}

/** Entry ids are `<ms>-<number>`: of one length they compare as they are written. */
function isOlder(a: string, b: string): boolean {
  if (a.length === b.length) return a < b;
  const [aMs = 0, aNumber = 0] = a.split("-").map(Number);
  const [bMs = 0, bNumber = 0] = b.split("-").map(Number);
  return aMs < bMs || (aMs === bMs && aNumber < bNumber);
}
