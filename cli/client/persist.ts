/**
 * Repeats what may be repeated: reading, and changes under an Idempotency-Key, which take effect
 * once. A gateway that was there and is gone may be replaced within seconds; one that was never
 * there is not waited for.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Refused, Unreached } from "./errors.js";

/** How long a gateway that is gone is waited for. */
const PATIENCE_MS = 30_000;
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

export interface Persistence {
  readonly signal: AbortSignal;
  /** Whether the gateway was reached before, so that even the first failure is waited out. */
  readonly known: boolean;
  /** Told once, when the first try has failed and others will follow. */
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

/** @param known whether the gateway was reached before */
export function mayRepeat(error: unknown, known: boolean): error is Unreached | Refused {
  if (error instanceof Unreached) return known || error.begun;
  // A proxy says so while no gateway is behind it, and a gateway before it has found its Redis.
  return known && error instanceof Refused && [502, 503, 504].includes(error.status);
}

/** Doubles from one try to the next, since the gateway's other clients wait for it as well. */
export function pauseMs(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, SHORTEST_PAUSE_MS * 2 ** Math.min(failures, 10));
}
