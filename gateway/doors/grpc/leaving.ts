/**
 * Tells the parts of a call that its client has left. Most calls only ask whether it has, so a
 * signal is made for those that need one: it costs more than all the rest of this.
 */
import type { Client } from "../../admission/inference.js";

export class Leaving implements Client {
  hasLeft = false;
  readonly #waiting = new Set<() => void>();
  readonly #isCut: () => boolean;
  #controller: AbortController | undefined;

  /** @param isCut whether the gateway itself cuts its connections, so that nobody has left */
  constructor(isCut: () => boolean) {
    this.#isCut = isCut;
  }

  onLeave(leave: () => void): () => void {
    this.#waiting.add(leave);
    return () => this.#waiting.delete(leave);
  }

  /** Aborts when the client leaves. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.hasLeft) this.#controller.abort();
    return this.#controller.signal;
  }

  /** To be called when the client has left, or its deadline has passed. */
  leave(): void {
    if (this.hasLeft || this.#isCut()) return;
    this.hasLeft = true;
    this.#controller?.abort();
    for (const leave of this.#waiting) leave();
    this.#waiting.clear();
  }
}
