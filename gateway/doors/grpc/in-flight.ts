/**
 * The requests of one stream that are under way. A client may send without counting: while a
 * sequence has as many steps under way as may wait, or the stream as many requests as it may have,
 * the gateway does not read on.
 */
import { EventEmitter, once } from "node:events";
import type { Change } from "../../sequences/sequence-id.js";

/** Most requests of a stream that are under way. */
const MOST = 1_024;

export class InFlight {
  readonly #mostOfSequence: number;
  readonly #sequences = new Map<string, Steps>();
  readonly #events = new EventEmitter<{ ended: [] }>();
  #count = 0;

  /** @param mostOfSequence steps of one sequence */
  constructor(mostOfSequence: number) {
    this.#mostOfSequence = mostOfSequence;
  }

  /**
   * @param sequence that the request is a step of; undefined if it is none
   * @param change ends the sequence; undefined if the step may be repeated under its key
   * @returns a function to call when the request has been answered
   */
  begin(sequence: string | undefined, change: Change | undefined): () => void {
    this.#count++;
    if (sequence !== undefined) {
      const steps = this.#sequences.get(sequence) ?? { count: 0, change };
      this.#sequences.set(sequence, { count: steps.count + 1, change: change ?? steps.change });
    }
    return () => {
      this.#count--;
      this.#endStep(sequence);
      this.#events.emit("ended");
    };
  }

  /** Resolves when the sequence may have another step. */
  async turnOf(sequence: string | undefined): Promise<void> {
    if (sequence === undefined) return;
    while ((this.#sequences.get(sequence)?.count ?? 0) >= this.#mostOfSequence) await once(this.#events, "ended");
  }

  /** Resolves when the stream may have another request. */
  async room(): Promise<void> {
    while (this.#count >= MOST) await once(this.#events, "ended");
  }

  /** Resolves when all have been answered. */
  async none(): Promise<void> {
    while (this.#count > 0) await once(this.#events, "ended");
  }

  /** The changes that end the sequences of all steps under way. */
  changes(): Change[] {
    return [...this.#sequences.values()].flatMap(({ change }) => change ?? []);
  }

  #endStep(sequence: string | undefined): void {
    if (sequence === undefined) return;
    const steps = this.#sequences.get(sequence);
    if (steps === undefined) return;
    if (steps.count === 1) this.#sequences.delete(sequence);
    else this.#sequences.set(sequence, { ...steps, count: steps.count - 1 });
  }
}

interface Steps {
  readonly count: number;
  readonly change: Change | undefined;
}
