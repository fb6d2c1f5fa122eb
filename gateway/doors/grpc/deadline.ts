/**
 * Deadlines of any length. The library's timers take 31 bits of ms, so a deadline that is further
 * away than 24.8 days would pass at once.
 */

/** The longest pause of a timer of node, in ms. */
const LONGEST_MS = 2 ** 31 - 1;

const unitsMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * Takes a deadline that is too far away for the library out of the head of a call.
 * @returns ms until the deadline; undefined if the call has none, or one that the library keeps
 */
export function takeFarTimeout(headers: Record<string, unknown>): number | undefined {
  const [, count, unit = ""] = /^(\d{1,8})([HMSmun])$/.exec(String(headers["grpc-timeout"])) ?? [];
  const ms = Number(count) * (unitsMs[unit] ?? NaN);
  if (!(ms > LONGEST_MS)) return undefined;
  delete headers["grpc-timeout"];
  return ms;
}

/**
 * Calls back at a time.
 * @param at in ms, on the clock of `Date.now()`
 * @param arm takes each timer, of which only the last one runs
 */
export function callAt(at: number, arm: (timer: NodeJS.Timeout) => void, passed: () => void): void {
  const leftMs = Math.max(0, at - Date.now());
  const wait = () => (leftMs > LONGEST_MS ? callAt(at, arm, passed) : passed());
  arm(setTimeout(wait, Math.min(leftMs, LONGEST_MS)));
}
