/**
 * The steps of one lane that this worker owns right now: waiting to run, suspected, or running. What is not in a hand has no lease
 * renewed, so a step leaves it only by a commit, a release, or the loss of its lease.
 */
import type { Delivery } from "#shared/contract/entry.js";
import { decodeFrame, type Frame } from "#shared/frame.js";
import { Signal } from "#shared/signal.js";
import type { Candidate } from "../batch/plan.js";
import type { StateLookup } from "../sequence/states.js";

export interface Held extends Candidate {
  readonly delivery: Delivery;
  readonly request: Frame;
  /** Begun when the step arrived, so that a batch need not wait for Redis. */
  readonly state: Promise<StateLookup>;
}

export class Hand {
  /** Notified when there may be something new to plan, or room for more. */
  readonly arrived = new Signal();
  readonly taken = new Signal();
  #waiting: Held[] = [];
  #suspects: Held[] = [];
  readonly #owned = new Map<string, Held>();

  get waiting(): readonly Held[] {
    return this.#waiting;
  }

  get suspects(): readonly Held[] {
    return this.#suspects;
  }

  entries(): string[] {
    return [...this.#owned.keys()];
  }

  has(entry: string): boolean {
    return this.#owned.has(entry);
  }

  isWaiting(entry: string): boolean {
    return [...this.#waiting, ...this.#suspects].some(({ delivery }) => delivery.entry === entry);
  }

  hold(held: readonly Held[], how: "fresh" | "suspect"): void {
    for (const one of held) this.#owned.set(one.delivery.entry, one);
    if (how === "fresh") this.#waiting.push(...held);
    else this.#suspects.push(...held);
    if (held.length > 0) this.arrived.notify();
  }

  /** Moves steps from waiting to running. */
  take(batch: readonly Held[]): void {
    const going = new Set(batch);
    this.#waiting = this.#waiting.filter((one) => !going.has(one));
    this.#suspects = this.#suspects.filter((one) => !going.has(one));
    this.taken.notify();
  }

  /** Forgets steps: committed, handed back, or lost. A running one finishes in vain; its commit will be refused. */
  drop(entries: Iterable<string>): void {
    const gone = new Set(entries);
    for (const entry of gone) this.#owned.delete(entry);
    this.#waiting = this.#waiting.filter(({ delivery }) => !gone.has(delivery.entry));
    this.#suspects = this.#suspects.filter(({ delivery }) => !gone.has(delivery.entry));
    this.taken.notify();
  }
}

/** Parsed once, at arrival; a frame that cannot be parsed was not written by a gateway of this version. */
export function hold(delivery: Delivery, expiresAt: number, batched: boolean, state: Promise<StateLookup>): Held {
  const request = decodeFrame(delivery.frame);
  const rows = batched ? (request.tensors[0]?.shape[0] ?? 1) : 1;
  const shapes = request.tensors.map(({ name, shape }) => `${name}[${(batched ? shape.slice(1) : shape).join(",")}]`);
  return {
    delivery,
    request,
    state,
    rows,
    shapeKey: shapes.join(";"),
    sequence: delivery.sequence,
    arrivedAt: performance.now(),
    expiresAt,
  };
}
