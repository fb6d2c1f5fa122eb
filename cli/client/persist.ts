/**
 * Repeats requests that are safe to repeat: reads, and changes under an Idempotency-Key. If a known
 * gateway disappears, the client waits, because another gateway may replace it within seconds. The
 * client does not wait for a gateway that it never reached.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Refused, Unreached } from "./errors.js";

/** How long to repeat a request to a known gateway that does not answer. */
const PATIENCE_MS = 30_000;
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

export interface Persistence {
  readonly signal: AbortSignal;
  /**
   * Whether the client has reached the gateway before. If so, the client retries even if the first
   * connect fails.
   */
  readonly known: boolean;
  /** Called once, after the first failure and before the second attempt. */
  readonly onBreak: (error: Unreached | Refused) => void;
}

export async function persistently<T>(work: () => Promise<T>, { signal, known, onBreak }: Persistence): Promise<T> {
  let failedAt: number | undefined;
  for (let failures = 0; ; failures++) {
    try {
      return await work();
    } catch (error) {
      if (!mayRepeat(error, known || failedAt !== undefined)) throw error;
      if (failedAt === undefined) onBreak(error);
      failedAt ??= performance.now();
      if (performance.now() - failedAt > PATIENCE_MS) throw error;
      await pause(pauseMs(failures), undefined, { signal });
    }
  }
}

/** @param known whether the client has reached the gateway before */
export function mayRepeat(error: unknown, known: boolean): error is Unreached | Refused {
  if (error instanceof Unreached) return known || error.begun;
  // Proxies answer with these while no gateway is behind them; gateways do until they reach Redis.
  return known && error instanceof Refused && [502, 503, 504].includes(error.status);
}

/** Doubles with each failure, because other clients wait for the same gateway. */
export function pauseMs(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, SHORTEST_PAUSE_MS * 2 ** Math.min(failures, 10));
}
