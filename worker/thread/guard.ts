/**
 * The main thread's end of a computing thread: asks the thread, and reports a hang or a death as
 * fatal, so that the process ends. A thread stuck in native code cannot be stopped alone, and a
 * native crash ends the process anyway. The supervisor then starts a new worker.
 */
import { Worker, type Transferable } from "node:worker_threads";
import type { Message, ThreadMessage } from "./protocol.js";

export interface Answered<Answer> {
  readonly answer: Answer;
  /** The thread's time for the answer, in ms, without the question's wait. */
  readonly ranMs: number;
}

/**
 * `Asked` is a question, and `Answer` its answer. `Ready` is the thread's first message after its
 * start. `Told` is a message without an answer. Threads exchange copies of all of these.
 */
export interface GuardedThread<Asked, Ready, Answer, Told> {
  readonly ready: Ready;
  /**
   * The thread answers questions in order.
   *
   * @throws Error with the thread's own reason
   */
  ask(asked: Asked, transfer?: readonly Transferable[]): Promise<Answered<Answer>>;
  /** The thread hears this before every question that it has not begun, and gives no answer. */
  tell(told: Told): void;
  close(): Promise<void>;
}

/**
 * A thread counts as hung if an answer takes longer than 30 s, and longer than ten times the
 * slowest recent answer. A waiting question may take that long for itself and for each question
 * before it.
 */
const WATCHDOG_MIN_MS = 30_000;
const WATCHDOG_FACTOR = 10;

/**
 * Starts a thread.
 *
 * @param module the file that the thread runs; it calls `serveThread`
 * @param options the thread gets a copy
 * @param onFatal runs when the thread hangs or dies; the thread is then of no more use
 * @throws Error with the thread's reason if the thread cannot start
 */
export async function openThread<Asked, Ready, Answer, Told = never>(
  module: URL,
  options: unknown,
  onFatal: (reason: string) => void,
): Promise<GuardedThread<Asked, Ready, Answer, Told>> {
  const thread = new Worker(module, { workerData: options });
  const open = new Map<number, { resolve: (answer: Answered<Answer>) => void; reject: (error: Error) => void }>();
  const post = (message: Message<Asked, Told>, transfer: readonly Transferable[] = []) =>
    thread.postMessage(message, [...transfer]);
  let nextId = 0;
  let closing = false;
  let slowestMs = 0;

  const ready = await new Promise<Ready>((resolve, reject) => {
    thread.on("message", (message: ThreadMessage<Ready, Answer>) => {
      if (message.kind === "ready") return resolve(message.ready);
      if (message.kind === "failed") {
        // The thread's exit may come with this message, before any handler of the rejection runs.
        closing = true;
        return reject(new Error(message.reason));
      }
      const question = open.get(message.id);
      open.delete(message.id);
      if (message.kind === "error") return question?.reject(new Error(message.reason));
      slowestMs = Math.max(slowestMs * 0.99, message.ranMs);
      return question?.resolve(message);
    });
    const lost = (reason: string) => {
      reject(new Error(reason));
      if (!closing) onFatal(reason);
    };
    thread.on("error", (error: Error) => lost(`thread failed: ${error.message}`));
    thread.on("exit", (code) => lost(`thread exited with ${code}`));
  }).catch(async (error: unknown) => {
    closing = true;
    await thread.terminate();
    throw error;
  });

  return {
    ready,
    ask(asked, transfer = []) {
      const question = { kind: "question", id: nextId++, asked } as const;
      return new Promise((resolve, reject) => {
        const limitMs = Math.max(WATCHDOG_MIN_MS, slowestMs * WATCHDOG_FACTOR) * (open.size + 1);
        const watchdog = setTimeout(() => onFatal(`no answer within ${Math.round(limitMs)} ms`), limitMs);
        const finish =
          <T>(done: (value: T) => void) =>
          (value: T) => {
            clearTimeout(watchdog);
            done(value);
          };
        open.set(question.id, { resolve: finish(resolve), reject: finish(reject) });
        post(question, transfer);
      });
    },
    tell: (told) => post({ kind: "told", told }),
    async close() {
      closing = true;
      await thread.terminate();
    },
  };
}
