/**
 * Lets the model threads of a process use its GPU one at a time. All WebGPU sessions of a process
 * share one device and one command encoder, which ONNX Runtime 1.30 does not guard: two runs at
 * once end the process. Each thread gets its turn in the order of arrival.
 */

/** Memory that all threads with turns share; zeros at first. */
export type TurnMemory = SharedArrayBuffer;

/**
 * Places in that memory, in 32-bit words: the next ticket to give out, and the ticket whose turn it
 * is.
 */
const TICKETS = 0;
const SERVED = 1;

export function makeTurns(): TurnMemory {
  return new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
}

/**
 * Waits for this thread's turn, does the work, and passes the turn on. The wait blocks the thread,
 * as the runtime's computing does. The thread must not call again before the first call has ended.
 *
 * @throws the error of `work`
 */
export async function inTurn<Result>(memory: TurnMemory, work: () => Promise<Result>): Promise<Result> {
  const words = new Int32Array(memory);
  const ticket = Atomics.add(words, TICKETS, 1);
  for (let served = Atomics.load(words, SERVED); served !== ticket; served = Atomics.load(words, SERVED)) {
    Atomics.wait(words, SERVED, served);
  }
  try {
    return await work();
  } finally {
    Atomics.add(words, SERVED, 1);
    Atomics.notify(words, SERVED);
  }
}
