/** How many threads ONNX Runtime may use inside one operator. */
import { availableParallelism } from "node:os";

/**
 * The number of threads that compute one operator of a model.
 *
 * A thread that waits for a core holds up all threads of its operator. With one thread more than
 * free cores, a small model took twice the CPU for less work. So one core is left to this process's
 * own I/O, and to other processes on the machine.
 *
 * @param wanted 0 stands for all cores but one, which the instances of a model share
 * @param instances of the model that compute on the cores of this machine, side by side
 */
export function intraOpThreads(wanted: number, instances: number, cores = availableParallelism()): number {
  return wanted > 0 ? wanted : Math.max(1, Math.floor((cores - 1) / Math.max(1, instances)));
}
