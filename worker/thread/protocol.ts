/** What passes between the main thread and a thread that computes: one word at the start, then an answer for every question. */
export type ThreadMessage<Ready, Answer> =
  | { readonly kind: "ready"; readonly ready: Ready }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "answer"; readonly id: number; readonly answer: Answer; readonly ranMs: number }
  | { readonly kind: "error"; readonly id: number; readonly reason: string };

/** Questions are answered in order; what is told needs no answer and is heard at once, ahead of the questions that wait. */
export type Message<Asked, Told> =
  ({ readonly kind: "question" } & Question<Asked>) | { readonly kind: "told"; readonly told: Told };

export interface Question<Asked> {
  readonly id: number;
  readonly asked: Asked;
}
