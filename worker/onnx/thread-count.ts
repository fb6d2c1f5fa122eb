/** How many threads ONNX Runtime may use inside one operator. */
import { availableParallelism } from "node:os";

/**
 * How many threads a model computes one operator with.
 *
 * A thread that waits for a core holds up all threads of its operator: with one more thread than
 * free cores, a small model took twice the CPU for less work. So one core is left to this process's
 * own reading and writing, and to what else runs beside it.
 *
 * @param wanted 0 stands for all cores but one
 */
export function intraOpThreads(wanted: number, cores = availableParallelism()): number {
  return wanted > 0 ? wanted : Math.max(1, cores - 1);
}
