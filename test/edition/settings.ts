/** Settings that several of these tests give a fleet. */

/** The number of buckets over which all requests of a deployment are spread. */
export function buckets(count: number): Record<string, string> {
  return { BATON_BUCKETS: String(count) };
}
