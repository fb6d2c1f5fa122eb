/** How many threads a model computes with. */
import { availableParallelism } from "node:os";

/**
 * @param wanted 0: as many as there are cores, but one, which is left to this process's own reading and writing and to whatever else runs beside it. A thread that waits for a
 * core holds up all threads of its operator: with one more thread than free cores, a small model took twice the CPU for less work.
 */
export function intraOpThreads(wanted: number, cores = availableParallelism()): number {
  return wanted > 0 ? wanted : Math.max(1, cores - 1);
}
