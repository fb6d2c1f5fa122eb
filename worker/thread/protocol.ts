/** The messages between the main thread and a computing thread. Types only. */

/** From the thread: first whether it has started, then an answer to every question. */
export type ThreadMessage<Ready, Answer> =
  | { readonly kind: "ready"; readonly ready: Ready }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "answer"; readonly id: number; readonly answer: Answer; readonly ranMs: number }
  | { readonly kind: "error"; readonly id: number; readonly reason: string };

/**
 * To the thread. The thread answers questions in order. A `told` message needs no answer, and the
 * thread hears it at once, before waiting questions.
 */
export type Message<Asked, Told> =
  ({ readonly kind: "question" } & Question<Asked>) | { readonly kind: "told"; readonly told: Told };

export interface Question<Asked> {
  readonly id: number;
  readonly asked: Asked;
}
