/** Puts an entry last into a map, which then forgets its first entry if it has more than `most`. */
export function remember<V>(map: Map<string, V>, name: string, value: V, most: number): void {
  map.delete(name);
  map.set(name, value);
  if (map.size <= most) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
