/**
 * The requests of one stream that are under way. A client may send without counting: while a
 * sequence has as many steps under way as may wait, or the stream as many requests as it may have,
 * the gateway does not read on.
 */
import { EventEmitter, once } from "node:events";

/** Most requests of a stream that are under way. */
const MOST = 1_024;

export class InFlight {
  readonly #mostOfSequence: number;
  /** How many steps of each sequence are under way. */
  readonly #steps = new Map<string, number>();
  readonly #events = new EventEmitter<{ ended: [] }>();
  #count = 0;

  /** @param mostOfSequence steps of one sequence */
  constructor(mostOfSequence: number) {
    this.#mostOfSequence = mostOfSequence;
  }

  /**
   * @param sequence that the request is a step of; undefined if it is none
   * @returns a function to call when the request has been answered
   */
  begin(sequence: string | undefined): () => void {
    this.#count++;
    if (sequence !== undefined) this.#steps.set(sequence, this.#stepsOf(sequence) + 1);
    return () => {
      this.#count--;
      if (sequence !== undefined) {
        const left = this.#stepsOf(sequence) - 1;
        if (left > 0) this.#steps.set(sequence, left);
        else this.#steps.delete(sequence);
      }
      this.#events.emit("ended");
    };
  }

  /** Resolves when the sequence may have another step. */
  async turnOf(sequence: string | undefined): Promise<void> {
    if (sequence === undefined) return;
    while (this.#stepsOf(sequence) >= this.#mostOfSequence) await once(this.#events, "ended");
  }

  /** Resolves when the stream may have another request. */
  async room(): Promise<void> {
    while (this.#count >= MOST) await once(this.#events, "ended");
  }

  /** Resolves when all have been answered. */
  async none(): Promise<void> {
    while (this.#count > 0) await once(this.#events, "ended");
  }

  #stepsOf(sequence: string): number {
    return this.#steps.get(sequence) ?? 0;
  }
}
