/** What passes between the main thread and a thread that computes. Types only. */

/** From the thread: one word when it has started, or cannot, then an answer to every question. */
export type ThreadMessage<Ready, Answer> =
  | { readonly kind: "ready"; readonly ready: Ready }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "answer"; readonly id: number; readonly answer: Answer; readonly ranMs: number }
  | { readonly kind: "error"; readonly id: number; readonly reason: string };

/**
 * To the thread. Questions are answered in order. What is told needs no answer and is heard at
 * once, ahead of the questions that wait.
 */
export type Message<Asked, Told> =
  ({ readonly kind: "question" } & Question<Asked>) | { readonly kind: "told"; readonly told: Told };

export interface Question<Asked> {
  readonly id: number;
  readonly asked: Asked;
}
