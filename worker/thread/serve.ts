/** The computing thread's end: opens once, then answers one question after the other. */
import { parentPort, workerData, type Transferable } from "node:worker_threads";
import type { Message, Question, ThreadMessage } from "./protocol.js";

export interface Served<Asked, Ready, Answer, Told> {
  readonly ready: Ready;
  /**
   * @returns the answer; objects in `transfer` move to the asker without a copy
   * @throws Error whose message goes to the asker
   */
  answer(asked: Asked): Promise<{ readonly answer: Answer; readonly transfer?: readonly Transferable[] }>;
  /** May run in the middle of an answer, at any `await`. */
  hear?(told: Told): void;
}

/**
 * Serves until the thread ends. If `open` fails, the thread sends the reason and ends.
 *
 * @param open gets the options of the thread's start
 */
export async function serveThread<Options, Asked, Ready, Answer, Told = never>(
  open: (options: Options) => Promise<Served<Asked, Ready, Answer, Told>>,
): Promise<void> {
  const post = (message: ThreadMessage<Ready, Answer>, transfer: readonly Transferable[] = []) =>
    parentPort?.postMessage(message, [...transfer]);
  let served: Served<Asked, Ready, Answer, Told>;
  try {
    served = await open(workerData as Options);
  } catch (error) {
    return post({ kind: "failed", reason: reasonOf(error) });
  }
  const reply = async ({ id, asked }: Question<Asked>) => {
    const startedAt = performance.now();
    try {
      const { answer, transfer } = await served.answer(asked);
      post({ kind: "answer", id, answer, ranMs: performance.now() - startedAt }, transfer);
    } catch (error) {
      post({ kind: "error", id, reason: reasonOf(error) });
    }
  };
  let last = Promise.resolve();
  parentPort?.on("message", (message: Message<Asked, Told>) => {
    if (message.kind === "told") served.hear?.(message.told);
    else last = last.then(() => reply(message));
  });
  post({ kind: "ready", ready: served.ready });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
