/**
 * The steps of one model that this worker owns right now, whatever their lanes. A step leaves the
 * holdings by a commit, by being handed back, or when another worker has taken it over. One that is
 * given up without any of these still stands in Redis as this worker's, so it is remembered until
 * it is taken back.
 */
import { createHash } from "node:crypto";
import { decodeFrame, type Frame } from "#shared/frame.js";
import type { Delivery } from "#shared/queue/entry.js";
import type { Taken } from "#shared/queue/work/stream.js";
import { Signal } from "#shared/signal.js";
import { realWorld } from "#shared/world.js";
import type { StateLookup } from "../sequence/states.js";

/**
 * A step that this worker owns, with its request parsed. Times are on `performance.now()`'s clock.
 */
export interface Held {
  readonly delivery: Delivery;
  readonly request: Frame;
  /** When this worker was given it. */
  readonly arrivedAt: number;
  /** When it must no longer begin to run. */
  readonly expiresAt: number;
  /** Size of the request's own batch dimension; 1 where it has none. */
  readonly rows: number;
  /**
   * Names and shapes of its inputs, and what is in those that a batch shares; equal for requests
   * that may share a batch.
   */
  readonly shapeKey: string;
  /** Name of its sequence; undefined for a stateless request. */
  readonly sequence: string | undefined;
  /** The lookup begins when the step arrives, so that a batch need not wait for Redis. */
  readonly state: Promise<StateLookup>;
}

/** How a model's requests share batches. */
export interface Batching {
  /** Whether the first axis of its inputs counts rows. */
  readonly batched: boolean;
  /** Inputs without that axis. A batch has each of them once, so its requests must agree on it. */
  readonly shared: ReadonlySet<string>;
}

/** For a model without a batch dimension. */
export const unbatched: Batching = { batched: false, shared: new Set() };

/** How a step came: new, or after an earlier delivery whose run may have ended its worker. */
export type Arrival = "fresh" | "suspect";

/** Where a held step stands: it waits as it arrived, or it runs, its commit included. */
type Stage = Arrival | "running";

/** Tells whoever takes steps from Redis how many to take, and takes them in. */
export interface Intake {
  /** How many more new steps may be read now. */
  room(): number;
  /** How many more suspects may be taken over now; the rest is left to other workers. */
  suspectRoom(): number;
  accept(taken: Taken, arrival: Arrival): void;
  /**
   * To be called when Redis may have given this worker entries without its knowledge, as a reply
   * was lost: nobody else takes them from a worker that lives.
   */
  doubt(): void;
}

/** What is remembered of a step that was given up. */
export type Left = Pick<Delivery, "key" | "lane" | "entry">;

export class Holdings {
  /** Notified when there may be something new to plan. */
  readonly arrived: Signal;
  /** Notified when there may be room for more. */
  readonly taken: { notify(): void };
  /** By the key of the delivery, oldest first. */
  readonly #steps = new Map<string, { readonly held: Held; stage: Stage }>();
  /** What was left, by its key, and when, on `performance.now()`'s clock. */
  readonly #left = new Map<string, { readonly located: Left; readonly at: number }>();

  constructor(taken: { notify(): void } = new Signal(), world = realWorld) {
    this.arrived = new Signal(world);
    this.taken = taken;
  }

  /** Fresh steps that have not begun, oldest first. */
  get waiting(): readonly Held[] {
    return this.#at("fresh");
  }

  /** Suspects that have not begun, oldest first. */
  get suspects(): readonly Held[] {
    return this.#at("suspect");
  }

  /** What has not begun. */
  unbegun(): Delivery[] {
    return [...this.waiting, ...this.suspects].map(({ delivery }) => delivery);
  }

  /** How many there are, running ones included. */
  get size(): number {
    return this.#steps.size;
  }

  /** The keys of all steps, running ones included. */
  keys(): string[] {
    return [...this.#steps.keys()];
  }

  /** @param key of a delivery, here and below */
  has(key: string): boolean {
    return this.#steps.has(key);
  }

  hold(arrived: readonly Held[], arrival: Arrival): void {
    for (const held of arrived) {
      this.#steps.set(held.delivery.key, { held, stage: arrival });
      this.#left.delete(held.delivery.key);
    }
    if (arrived.length > 0) this.arrived.notify();
  }

  /** Moves steps from waiting to running. */
  take(batch: readonly Held[]): void {
    for (const { delivery } of batch) {
      const step = this.#steps.get(delivery.key);
      if (step !== undefined) step.stage = "running";
    }
    this.taken.notify();
  }

  /**
   * Forgets steps that were committed, handed back, or lost. One that runs finishes in vain, since
   * its commit is refused.
   */
  drop(keys: Iterable<string>): void {
    for (const key of keys) {
      this.#steps.delete(key);
      this.#left.delete(key);
    }
    this.taken.notify();
  }

  /**
   * Gives steps up that this worker may go on owning: it was cut off, their states could not be
   * read, or their commit failed. Nobody else takes them from a worker that lives.
   * @param now on `performance.now()`'s clock
   */
  leave(steps: Iterable<Left>, now: number): void {
    for (const { key, lane, entry } of steps) {
      this.#steps.delete(key);
      this.#left.set(key, { located: { key, lane, entry }, at: now });
    }
    this.taken.notify();
  }

  /** What was left at this time or earlier, in that order. */
  leftBy(time: number): Left[] {
    return [...this.#left.values()].filter(({ at }) => at <= time).map(({ located }) => located);
  }

  #at(stage: Stage): Held[] {
    const found: Held[] = [];
    for (const step of this.#steps.values()) if (step.stage === stage) found.push(step.held);
    return found;
  }
}

/**
 * Parses a delivery's request, once, at its arrival.
 *
 * @param expiresAt when the step must no longer begin, on `performance.now()`'s clock
 * @throws Error for a frame that no gateway of this version has written
 */
export function hold(
  delivery: Delivery,
  expiresAt: number,
  batching: Batching,
  state: Promise<StateLookup>,
  world = realWorld,
): Held {
  const request = decodeFrame(delivery.frame);
  const { batched, shared } = batching;
  const rowed = batched ? request.tensors.find(({ name }) => !shared.has(name)) : undefined;
  const shapes = request.tensors.map(({ name, shape, data }) => {
    if (shared.has(name)) return `${name}[${shape.join(",")}]=${fingerprint(data)}`;
    return `${name}[${(batched ? shape.slice(1) : shape).join(",")}]`;
  });
  return {
    delivery,
    request,
    state,
    rows: rowed?.shape[0] ?? 1,
    shapeKey: shapes.join(";"),
    sequence: delivery.sequence,
    arrivedAt: world.now(),
    expiresAt,
  };
}

/** Equal for equal bytes, and for no others. */
function fingerprint(data: Buffer): string {
  return data.length <= 64 ? data.toString("base64") : createHash("sha256").update(data).digest("base64");
}
